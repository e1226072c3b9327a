export {
  type Cassette,
  type CassetteHead,
  CassetteWriter,
  type RecordedCall,
  recordedParts,
  readCassette,
} from "./cassette.ts";
export { recordProvider } from "./record.ts";
export { replayProvider } from "./replay.ts";
export { type ListedServer, printServerTypes } from "./server-types.ts";
export { type Version, Versions } from "./versions.ts";
