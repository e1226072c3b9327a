import { missingPrograms } from "./program.ts";

const missing = missingPrograms();

/** Whether there is no Redis or no haproxy here. The output says so. */
export const isSkipped: boolean = missing !== undefined;

if (missing !== undefined)
  console.log(`${missing} cannot be had here: the tests of several replicas are skipped`);
