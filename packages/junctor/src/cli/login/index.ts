export { givenSecrets, openLogins, readSecrets } from "./logins-store.ts";
