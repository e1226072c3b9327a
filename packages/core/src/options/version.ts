/** The version of this package; `package.json` says the same. */
export const packageVersion = "0.1.0";
