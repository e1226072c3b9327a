export { type ListedServer, printServerTypes } from "./server-types.ts";
