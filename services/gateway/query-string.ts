/**
 * Query strings, read as WHATWG forms are (`+` is a blank), into an object without a prototype.
 *
 * Numbers and truth values become such here, by name, instead of by the validator's coercion: that would reach into bodies too
 * and turn a JSON number into an id. A name given twice becomes a list, which no schema accepts.
 */
const NUMBERS = new Set(['asOf', 'atLeast', 'limit', 'timeout']);
const BOOLEANS = new Set(['placement']);

type Value = string | number | boolean;

export type Query = Record<string, Value | Value[]>;

export function parseQuery(text: string): Query {
  const query: Query = Object.create(null) as Query;
  for (const [name, value] of new URLSearchParams(text)) {
    const known = query[name];
    const parsed = parseValue(name, value);
    if (known === undefined) query[name] = parsed;
    else query[name] = Array.isArray(known) ? [...known, parsed] : [known, parsed];
  }
  return query;
}

function parseValue(name: string, value: string): Value {
  if (NUMBERS.has(name) && /^\d{1,16}(\.\d{1,3})?$/.test(value)) return Number(value);
  if (BOOLEANS.has(name) && /^(true|false)$/.test(value)) return value === 'true';
  return value;
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
