// Loaded with the first skill. It goes through a file of ours, so that the interop code for
// CommonJS is loaded with it too.

export { parse } from "yaml";
