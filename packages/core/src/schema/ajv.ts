// All of ajv in one module, loaded with the first JSON Schema. If its parts were imported one by one, the
// interop code for CommonJS that they share would be in a file that every program loads.

import { Ajv, type Options } from "ajv";
import formats from "ajv-formats";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Dialect } from "./dialect.ts";

/** The class that checks each dialect. */
export const ajvOf: { readonly [Key in Dialect]: new (options: Options) => Ajv } = {
  "2020-12": Ajv2020,
  "2019-09": Ajv2019,
  "draft-07": Ajv,
};

/** Adds the formats of the specification to an instance. */
export const addFormats = (ajv: Ajv): unknown => formats.default(ajv);
