export { projectOf } from "./attach.ts";
