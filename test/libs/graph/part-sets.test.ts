import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ByteReader, ByteWriter } from '../../../libs/dataflow/bytes.ts';
import { NONE } from '../../../libs/graph/columns.ts';
import { PartSets } from '../../../libs/graph/part-sets.ts';

/** Rows near the bounds of chunks. */
const ROWS = [0, 1, 2, 31, 32_767, 32_768, 32_769, 70_000];
const ROW_COUNT = 70_001;

describe('part sets', () => {
  test('are as a plain set says, at any number of parts, and after any number of increments', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(1, 4, 8, 9, 30, 64),
        fc.array(fc.tuple(fc.constantFrom(...ROWS), fc.nat(63), fc.boolean()), { maxLength: 60 }),
        (parts, steps) => {
          const sets = new PartSets(parts, 0);
          const restored = new PartSets(parts, 0);
          const model = new Map<number, Set<number>>();
          const cut = (): void => {
            const writer = new ByteWriter();
            sets.writeChanges(writer, ROW_COUNT);
            sets.markRecorded(ROW_COUNT);
            restored.read(new ByteReader(writer.written()));
          };
          for (const [row, any, isCut] of steps) {
            const part = any % parts;
            sets.add(row, part);
            model.set(row, (model.get(row) ?? new Set()).add(part));
            if (isCut) cut();
          }
          cut();
          const copied = new PartSets(parts, 0);
          const writer = new ByteWriter();
          sets.writeRows(writer, 0, 40_000);
          sets.writeRows(writer, 40_000, ROW_COUNT);
          const reader = new ByteReader(writer.written());
          copied.read(reader);
          copied.read(reader);
          for (const known of [sets, restored, copied]) {
            for (const row of ROWS)
              expect(known.partsOf(row)).toEqual([...(model.get(row) ?? [])].sort((a, b) => a - b));
            expect(known.distinct).toBe(model.size);
            for (let part = 0; part < parts; part++) {
              const rows = ROWS.filter((row) => model.get(row)?.has(part) === true);
              expect(known.counts[part]).toBe(rows.length);
              expect(known.next(part, 0, ROW_COUNT)).toBe(rows[0] ?? NONE);
            }
          }
        },
      ),
      { numRuns: 30 },
    );
  });

  test('a byte a row up to eight parts', () => {
    const sets = new PartSets(8, 0);
    for (let row = 0; row < 65_536; row++) sets.add(row, row % 8);
    expect(sets.byteLength / 65_536).toBeLessThan(1.01);
  });
});
