export { forEachMember } from "./checked.ts";
export { joinJson, joinMembers, prependMembers, editMembers, withoutMembers } from "./splice.ts";
export { decodeKey } from "./keys.ts";
export { toOneLine, rewriteStrings, rewriteTexts } from "./rewrite.ts";
export { inScratch, maxScratchBytes, minPiecedBytes, Pieced } from "./pieced.ts";
export { RawJson, type WrittenJson } from "./raw.ts";
export { type Index, scan, scanElements, type ScanLimits } from "./scan.ts";
export { defineShape, lenient, type Shape, type ShapeTree } from "./shape.ts";
export { isJsonObject, type JsonObject, parseText, toJsonValue } from "./value.ts";
