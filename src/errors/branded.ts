/** Gives every error of a class a brand, in a place where nothing that prints an error shows it. */
export function putBrand(errors: { readonly prototype: Error }, brand: symbol): void {
  Object.defineProperty(errors.prototype, brand, { value: true });
}

/**
 * Whether a value is an error with this brand, and its message still a string. A module of the user may have another copy
 * of our classes, so the brand is a symbol of the global registry (`Symbol.for`). A code cannot serve as the brand: other
 * packages have codes like ours. A value that throws when it is looked at is no error of ours.
 */
export function isBranded<Kind extends Error>(
  value: unknown,
  brand: symbol,
  fits: (error: Partial<Kind>) => boolean = () => true,
): boolean {
  try {
    if (!(value instanceof Error) || typeof value.message !== "string") return false;
    return Reflect.get(value, brand) === true && fits(value as Partial<Kind>);
  } catch {
    return false;
  }
}
