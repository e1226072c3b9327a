/**
 * Brands the errors of a class, and has `instanceof` go by the brand: a module of the user may have another copy of our
 * classes. The brand is a symbol of the global registry (`Symbol.for`), in a place where nothing that prints an error shows
 * it. A code cannot serve as the brand: other packages have codes like ours. An error whose message is no longer a string,
 * or that does not fit, is none of ours, and neither is a value that throws when it is looked at.
 */
export function brandErrors<Kind extends Error>(
  errors: { readonly prototype: Kind; readonly name: string },
  fits: (error: Partial<Kind>) => boolean = () => true,
): void {
  const brand = Symbol.for(`junctor.${errors.name}`);
  const isBranded = (value: unknown): boolean => {
    try {
      if (!(value instanceof Error) || typeof value.message !== "string") return false;
      return Reflect.get(value, brand) === true && fits(value as Partial<Kind>);
    } catch {
      return false;
    }
  };
  Object.defineProperty(errors.prototype, brand, { value: true });
  Object.defineProperty(errors, Symbol.hasInstance, { value: isBranded });
}
