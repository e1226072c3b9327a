export type { HeaderSource } from "./endpoint.ts";
