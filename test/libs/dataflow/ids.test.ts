import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EdgeColumns } from '../../../libs/dataflow/edge-columns.ts';
import { isUtf8, rejectInOrder } from '../../../libs/dataflow/ids.ts';

describe('isUtf8', () => {
  const decodes = (bytes: Uint8Array): boolean => {
    try {
      new TextDecoder('utf-8', { fatal: true }).decode(bytes);
      return true;
    } catch {
      return false;
    }
  };

  it('agrees with TextDecoder about any bytes near the borders of the encoding', () => {
    const borders = [
      0, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xec, 0xed, 0xee,
    ];
    const byte = fc.constantFrom(...borders, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff);
    let valid = 0;
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 5 }), (array) => {
        const bytes = Uint8Array.from(array);
        if (decodes(bytes)) valid += 1;
        expect(isUtf8(bytes, 0, bytes.length)).toBe(decodes(bytes));
      }),
      { numRuns: 20_000 },
    );
    expect(valid).toBeGreaterThan(100);
  });

  it('does not read beyond its range', () => {
    const bytes = new TextEncoder().encode('aé€😀');
    expect(isUtf8(bytes, 1, 3)).toBe(true);
    expect(isUtf8(bytes, 1, 2)).toBe(false);
    expect(isUtf8(bytes, 3, 5)).toBe(false);
    expect(isUtf8(bytes, 6, 9)).toBe(false);
  });
});

describe('rejectInOrder', () => {
  it('keeps the first hundred reasons of all passes in the order of the edges', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3), { minLength: 400, maxLength: 400 }), (passes) => {
        const columns = new EdgeColumns();
        columns.reserve(passes.length);
        columns.count = passes.length;
        for (let pass = 1; pass <= 3; pass++) {
          rejectInOrder(columns, () => {
            for (const [i, own] of passes.entries()) if (own === pass) columns.reject(i, `pass ${pass}`);
          });
        }
        const expected = passes.flatMap((pass, index) =>
          pass === 0 ? [] : [{ index, reason: `pass ${pass}` }],
        );
        expect(columns.rejectedCount).toBe(expected.length);
        expect(columns.reasons).toEqual(expected.slice(0, 100));
      }),
      { numRuns: 50 },
    );
  });
});
