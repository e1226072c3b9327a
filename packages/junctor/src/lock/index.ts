export {
  type Approved,
  type Lock,
  type LockPart,
  lockParts,
  readLock,
  toCanonicalJson,
  writeLock,
} from "./lock-file.ts";
export {
  createPinnedJson,
  nameOf,
  openPins,
  type PinnedJson,
  type Pins,
  type Unapproved,
  withPreparedLists,
} from "./pins.ts";
