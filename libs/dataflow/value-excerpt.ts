/** A value of a payload as it appears in a reason: short, and always well-formed text. */

/** Longer values are cut: a reason names a value, it does not carry it. */
const EXCERPT_CHARACTERS_MAX = 40;

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The text in `bytes[start .. end)`, cut to about 40 characters. */
export function excerpt(bytes: Uint8Array, start: number, end: number): string {
  // A character has at most 4 bytes; what the cut leaves of one decodes to U+FFFD, beyond the characters kept.
  const text = decoder.decode(bytes.subarray(start, Math.min(end, start + EXCERPT_CHARACTERS_MAX * 4 + 4)));
  const characters = Array.from(text);
  if (characters.length <= EXCERPT_CHARACTERS_MAX) return text;
  return `${characters.slice(0, EXCERPT_CHARACTERS_MAX).join('')}…`;
}

/** The same in quotes, with control characters escaped: for formats whose values have no quotes of their own. */
export function quotedExcerpt(bytes: Uint8Array, start: number, end: number): string {
  return JSON.stringify(excerpt(bytes, start, end));
}
