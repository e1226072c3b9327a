export { openLogins } from "./logins-store.ts";
export { givenSecrets, readSecrets } from "./secrets.ts";
