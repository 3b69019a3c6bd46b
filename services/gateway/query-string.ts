/**
 * Query strings, read as WHATWG forms are (`+` is a blank), into an object without a prototype.
 *
 * Numbers become numbers here, by name, instead of by the validator's coercion: that would reach into bodies too
 * and turn a JSON number into an id. A name given twice becomes a list, which no schema accepts.
 */
const NUMBERS = new Set(['asOf', 'atLeast', 'limit', 'timeout']);

export type Query = Record<string, string | number | (string | number)[]>;

export function parseQuery(text: string): Query {
  const query: Query = Object.create(null) as Query;
  for (const [name, value] of new URLSearchParams(text)) {
    const known = query[name];
    const parsed = NUMBERS.has(name) && /^\d{1,16}(\.\d{1,3})?$/.test(value) ? Number(value) : value;
    if (known === undefined) query[name] = parsed;
    else query[name] = Array.isArray(known) ? [...known, parsed] : [known, parsed];
  }
  return query;
}

/**
 * Whether a URL is percent-encoded as it must be: ASCII, each `%` with two digits, the bytes valid UTF-8.
 * URLSearchParams would put replacement characters for what is not, and so answer about another id.
 */
export function isWellEncoded(url: string): boolean {
  if (!/^[\x21-\x7e]*$/.test(url)) return false;
  try {
    decodeURIComponent(url);
    return true;
  } catch {
    return false;
  }
}
