/**
 * What is known about a request that failed: it never left (`not_sent`), it left and it is unknown whether it was carried
 * out (`outcome_unknown`), or the other side refused or answered it (`answered`).
 */
export type Delivery = "not_sent" | "outcome_unknown" | "answered";

/** A key of the global registry, so that all copies of this module share it. */
const brandKey = Symbol.for("junctor.error");

/**
 * The base of all our errors. `instanceof` goes by a brand and not by the prototype chain, because a user's module may have another copy
 * of our classes. A class name cannot serve as the brand, since minifiers change it, and neither can a code: other packages have codes
 * like ours.
 */
export abstract class BrandedError extends Error {
  /** Each class of ours has its own. A class that a user derives from one inherits it. */
  protected static readonly brand: string = "Error";

  static {
    // On the prototype, where printing an error does not show it; and not a declared member, whose type would differ between two copies.
    Object.defineProperty(this.prototype, brandKey, {
      get(this: BrandedError) {
        return (this.constructor as typeof BrandedError).brand;
      },
    });
  }

  abstract readonly code: string;

  /** Whether an error with the brand has the fields that our code relies on: another version may have made it. */
  protected static fits(_error: object): boolean {
    return true;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (!Object.hasOwn(this, "brand")) return Function.prototype[Symbol.hasInstance].call(this, value);
    try {
      if (!(value instanceof Error) || typeof value.message !== "string") return false;
      const brand: unknown = Reflect.get(value, brandKey);
      return (brand === this.brand || (this === BrandedError && brand !== undefined)) && this.fits(value);
    } catch {
      // A value that throws when it is looked at is not ours.
      return false;
    }
  }
}
