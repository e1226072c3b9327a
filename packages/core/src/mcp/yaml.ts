// Loaded with the first skill. Through a file of ours, so that the code that CommonJS needs to be a module is loaded with it.

export { parse } from "yaml";
