import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NONE } from '../../../libs/graph/columns.ts';
import { hashId, viewOf } from '../../../libs/graph/id-hash.ts';
import { findText, VertexTable } from '../../../libs/graph/vertex-table.ts';

const encoder = new TextEncoder();

function add(table: VertexTable, id: Uint8Array, hash = hashId(viewOf(id), 0, id.length)): number {
  return table.findOrAdd(viewOf(id), 0, id.length, hash);
}

describe('the vertex table', () => {
  it('gives rows in order of first appearance, as a Map of the ids would', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 9 }), { maxLength: 400 }), (ids) => {
        const table = new VertexTable();
        const oracle = new Map<string, number>();
        for (const id of ids) {
          const key = Buffer.from(id).toString('hex');
          if (!oracle.has(key)) oracle.set(key, oracle.size);
          expect(add(table, id)).toBe(oracle.get(key));
        }
        expect(table.count).toBe(oracle.size);
        for (const [key, row] of oracle) {
          const id = new Uint8Array(Buffer.from(key, 'hex'));
          expect(table.find(viewOf(id), 0, id.length, hashId(viewOf(id), 0, id.length))).toBe(row);
          expect(Buffer.from(table.idOf(row)).toString('hex')).toBe(key);
        }
      }),
    );
  });

  it('keeps ids apart that share all 32 bits of the hash, however many they are', () => {
    const table = new VertexTable();
    for (let n = 0; n < 5_000; n++) expect(add(table, encoder.encode(`v${n}`), 12345)).toBe(n);
    expect(add(table, encoder.encode('v4999'), 12345)).toBe(4_999);
    expect(table.byteLength).toBeLessThan(16 * 1024 * 1024);
  });

  it('looks up many ids at once as one after the other, new ones in index order', () => {
    const table = new VertexTable();
    const ids = Array.from({ length: 3000 }, (_, n) => encoder.encode(`id-${(n * 7919) % 1900}`));
    const start = new Uint32Array(ids.length);
    const end = new Uint32Array(ids.length);
    const hash = new Int32Array(ids.length);
    const bytes = new Uint8Array(ids.reduce((sum, id) => sum + id.length, 0));
    let at = 0;
    for (const [n, id] of ids.entries()) {
      bytes.set(id, at);
      start[n] = at;
      at += id.length;
      end[n] = at;
      hash[n] = hashId(viewOf(bytes), start[n]!, end[n]!);
    }
    const rows = new Uint32Array(ids.length);
    table.findOrAddMany(viewOf(bytes), start, end, hash, 0, ids.length, rows);
    const single = new VertexTable();
    expect([...rows]).toEqual(ids.map((id) => add(single, id)));
  });

  it('takes ids of 1 and of 1,024 bytes, and knows nothing it was not given', () => {
    const table = new VertexTable();
    const long = new Uint8Array(1024).fill(0xc3);
    expect(add(table, Uint8Array.of(0))).toBe(0);
    expect(add(table, long)).toBe(1);
    expect(table.idOf(1)).toEqual(long);
    expect(findText(table, 'nobody')).toBe(NONE);
  });
});
