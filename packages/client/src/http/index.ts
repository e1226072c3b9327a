export type { HeaderSource } from "./http-way.ts";
