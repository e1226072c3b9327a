export {
  type AnswerReader,
  inputRequired,
  isInputRequired,
  noAnswers,
  readAnswers,
  audio,
  describeBlockFault,
  embedResource,
  type FailedResult,
  failure,
  image,
  isContent,
  isResourceContents,
  resourceLink,
  structured,
  type StructuredResult,
  text,
  toResourceContents,
} from "./content.ts";
export {
  type Audit,
  type AuditOptions,
  type AuditRecord,
  type AuditSink,
  createAudit,
  bounded,
  describeEnd,
  toTrace,
} from "./audit.ts";
export {
  type ChangeSource,
  createChanges,
  createSource,
  createWatches,
  levelsOf,
  type Watches,
} from "./changes.ts";
export {
  type AskCaller,
  type CallContext,
  type CallEvent,
  createCallContext,
  noopAsync,
  toContext,
  withContext,
} from "./context.ts";
export { type ListedItem, foldCase, spellingsOf } from "./filters.ts";
export {
  type CallChanges,
  type CallEnd,
  latest,
  type Middleware,
  type MiddlewareOptions,
  withMiddleware,
} from "./middleware.ts";
export { withGroups } from "./groups.ts";
export {
  type Completion,
  createCompletion,
  createOperation,
  findIn,
  hasTaskEnded,
  isLook,
  kindOf,
  readCompletion,
  readOperation,
  thingOf,
  toParams,
} from "./operation.ts";
export type {
  Answers,
  CallerInfo,
  Change,
  Entry,
  InputRequired,
  Notice,
  Offers,
  Operation,
  Outcome,
  Provider,
  Round,
  Target,
  Task,
  TaskOutcome,
  Wrapper,
} from "./provider.ts";
export { type Names, renameAt, renameOutcome, withNames } from "./with-names.ts";
export { emptyListing, Listing, mapListings } from "./listing.ts";
