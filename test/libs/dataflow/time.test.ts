import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkedTimeMs, parseTime, TIME_MS_MAX, TIME_MS_MIN } from '../../../libs/dataflow/time.ts';

const two = (n: number): string => String(n).padStart(2, '0');

describe('parseTime', () => {
  it('agrees with Date for every instant of the years 1 to 9999', () => {
    fc.assert(
      fc.property(fc.integer({ min: TIME_MS_MIN, max: TIME_MS_MAX }), (ms) => {
        expect(parseTime(new Date(ms).toISOString())).toBe(ms);
      }),
      { numRuns: 2000 },
    );
  });

  it('agrees with Date.UTC about which dates there are', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1000, max: 9999 }),
        fc.integer({ min: 0, max: 13 }),
        fc.integer({ min: 0, max: 32 }),
        (year, month, day) => {
          const date = new Date(Date.UTC(year, month - 1, day));
          const isDate = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
          expect(parseTime(`${year}-${two(month)}-${two(day)}`)).toBe(isDate ? date.getTime() : Number.NaN);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('subtracts the offset', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 4e12 }),
        fc.integer({ min: -1439, max: 1439 }),
        fc.boolean(),
        (instant, minutes, colon) => {
          const ms = instant - (instant % 60_000);
          const hours = two(Math.floor(Math.abs(minutes) / 60));
          const offset = `${minutes < 0 ? '-' : '+'}${hours}${colon ? ':' : ''}${two(Math.abs(minutes) % 60)}`;
          const local = new Date(ms + minutes * 60_000).toISOString().slice(0, 16);
          expect(parseTime(local + offset)).toBe(ms);
        },
      ),
    );
  });

  it('reads a time without offset as UTC, whatever the zone of the host', () => {
    const zone = process.env['TZ'];
    process.env['TZ'] = 'America/New_York';
    try {
      expect(new Date('2024-03-10T02:30:00').toISOString()).not.toBe('2024-03-10T02:30:00.000Z');
      expect(parseTime('2024-03-10T02:30:00')).toBe(Date.UTC(2024, 2, 10, 2, 30));
    } finally {
      if (zone === undefined) delete process.env['TZ'];
      else process.env['TZ'] = zone;
    }
  });

  it.each([
    ['2024-02-29', Date.UTC(2024, 1, 29)],
    ['2000-02-29', Date.UTC(2000, 1, 29)],
    ['2024-05-06T07:08', Date.UTC(2024, 4, 6, 7, 8)],
    ['2024-05-06 07:08:09', Date.UTC(2024, 4, 6, 7, 8, 9)],
    ['2024-05-06T07:08:09.1', Date.UTC(2024, 4, 6, 7, 8, 9, 100)],
    ['2024-05-06T07:08:09.123456789Z', Date.UTC(2024, 4, 6, 7, 8, 9, 123)],
    ['1969-12-31T23:59:59.9999Z', -1],
    ['2024-05-06T07:08Z', Date.UTC(2024, 4, 6, 7, 8)],
    ['2024-05-06T07:08+0530', Date.UTC(2024, 4, 6, 1, 38)],
    ['0001-01-01T00:00:00Z', TIME_MS_MIN],
    ['9999-12-31T23:59:59.999Z', TIME_MS_MAX],
  ])('reads %s', (text, ms) => {
    expect(parseTime(text)).toBe(ms);
  });

  it.each([
    '',
    '2024',
    '2024-05',
    '2024-5-06',
    '20240506',
    '2024-127',
    '2024-W10-1',
    '0000-01-01',
    '10000-01-01',
    '-2024-01-01',
    '+02024-01-01',
    '2023-02-29',
    '1900-02-29',
    '2024-04-31',
    '2024-05-06T',
    '2024-05-06Z',
    '2024-05-06T07',
    '2024-05-06T07:8',
    '2024-05-06t07:08',
    '2024-05-06T07:08z',
    '2024-05-06T24:00',
    '2024-05-06T23:60',
    '2024-05-06T23:59:60',
    '2024-05-06T07:08:',
    '2024-05-06T07:08:09.',
    '2024-05-06T07:08:09,5',
    '2024-05-06T07:08:09.1234567890',
    '2024-05-06T07:08.5',
    '2024-05-06T07:08+5',
    '2024-05-06T07:08+05',
    '2024-05-06T07:08+05:3',
    '2024-05-06T07:08+24:00',
    '2024-05-06T07:08+05:60',
    '2024-05-06T07:08:09Zx',
    ' 2024-05-06',
    '2024-05-06 ',
    '0001-01-01T00:00+00:01',
    '9999-12-31T23:59-00:01',
    'yesterday',
  ])('refuses %j', (text) => {
    expect(parseTime(text)).toBeNaN();
  });

  it('reads a range of bytes', () => {
    const bytes = new TextEncoder().encode('x2024-05-06T07:08Zx');
    expect(parseTime(bytes, 1, bytes.length - 1)).toBe(Date.UTC(2024, 4, 6, 7, 8));
  });
});

describe('checkedTimeMs', () => {
  it('lets through whole milliseconds of the years 1 to 9999 only', () => {
    expect(checkedTimeMs(0)).toBe(0);
    expect(checkedTimeMs(TIME_MS_MIN)).toBe(TIME_MS_MIN);
    expect(checkedTimeMs(TIME_MS_MIN - 1)).toBeNaN();
    expect(checkedTimeMs(TIME_MS_MAX + 1)).toBeNaN();
    expect(checkedTimeMs(0.5)).toBeNaN();
    expect(checkedTimeMs(Number.NaN)).toBeNaN();
  });
});
