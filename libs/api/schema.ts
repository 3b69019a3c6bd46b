/**
 * What every schema of the HTTP interface is made with.
 *
 * Schemas are named (`$id`) and refer to one another by name, so that the OpenAPI document has one component for
 * each and generated clients get named types. TypeBox's own references lose the static type, its unions of
 * literals become `anyOf`, its nullable types likewise, and client generators stumble over all three: hence
 * these helpers.
 */
import { type Static, type TSchema, type TSchemaOptions, Type } from 'typebox';

/** A reference to a named schema that keeps its static type. */
export function Named<T extends TSchema & { $id?: string }>(schema: T) {
  return Type.Unsafe<Static<T>>({ $ref: `${schema.$id}#` });
}

/** A string of a fixed set. */
export function StringEnum<const T extends readonly string[]>(values: T, options: TSchemaOptions = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options });
}

/** An object with exactly these properties: answers never carry others, and a typing error is not ignored. */
export const CLOSED = { additionalProperties: false } as const;
