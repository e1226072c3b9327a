export {
  canShowViews,
  isAppOnly,
  isVisibleTo,
  originKey,
  type ViewCsp,
  type ViewPermissions,
  viewType,
  viewUriOf,
  type Visibility,
  withViewUri,
} from "./app.ts";
export type { Caller } from "./caller.ts";
export { definitionOf, fromDefinition, ownerOf, setOwner, withMembers, withName } from "./definition.ts";
export {
  decideEra,
  type Era,
  type HeaderLookup,
  isLegalBatch,
  type LegacyEra,
  metaOf,
  type ModernEra,
} from "./era.ts";
export {
  type Declared,
  declaredExtension,
  extensionIds,
  type Extensions,
  missingExtension,
  needsExtension,
  nothingDeclared,
  toDeclared,
  withoutTasks,
  withTasks,
} from "./extension.ts";
export { readFrontMatter } from "./front-matter.ts";
export type { Link, LinkEvents, LinkMode, LinkRequest, StartProgress } from "./link.ts";
export { callerKey, carriedMeta, metaKeys } from "./meta.ts";
export {
  assertParamHeaders,
  encodeHeaderValue,
  mirroredParams,
  mirroringFault,
  namedBy,
} from "./mirrored-headers.ts";
export {
  announced,
  type Announced,
  announcedAs,
  type CallKind,
  type Items,
  keyOf,
  type Method,
  methods,
  type Part,
  parts,
} from "./methods.ts";
export type { Observation, SentObservation } from "./observation.ts";
export { objectParam, stringParam, stringsParam } from "./params.ts";
export {
  hasObjectRoot,
  projectListed,
  projectPrompt,
  projectPromptResult,
  projectTool,
  projectToolResult,
  withoutModernMembers,
} from "./projection.ts";
export {
  type AskParams,
  type Questions,
  askVisits,
  closedForm,
  elicit,
  type Elicited,
  elicitUrl,
  isAcceptable,
  isAskMethod,
  lacking,
  lackingAny,
  listRoots,
  missingAfter,
  missingCapability,
  notOffered,
  pagesOf,
  parseAsks,
  type Root,
  sample,
  type Sampled,
  toQuestion,
  toLegacyQuestion,
  toModernQuestion,
  unanswered,
  urlElicitationRequired,
  visitedMethod,
  visitIdOf,
} from "./question.ts";
export {
  everythingRelayable,
  isAtLeast,
  isLegacyRevision,
  isModernRevision,
  type LegacyRevision,
  legacyRevisions,
  type ModernRevision,
  modernRevisions,
  newestLegacyRevision,
  newestModernRevision,
  type Relayable,
  type Revision,
  toRelayable,
} from "./revision.ts";
export { createSeal, type Seal, type Unsealed } from "./seal.ts";
export { cardType, isCardName, type ServerCard, toCardPages } from "./server-card.ts";
export type { Observer, Server, WireContext } from "./server.ts";
export {
  type Announce,
  createSession,
  type Handshake,
  parseInitialize,
  type Session,
  sessionHeader,
  toInitializeResult,
} from "./session.ts";
export { messageShape } from "./shape.ts";
export {
  childrenOf,
  type FrontMatter,
  maxSkillBytes,
  maxSkillFiles,
  parseSkill,
  type Skill,
  skillFolderOf,
} from "./skill.ts";
export { type Group, type GroupContents, type GroupedPart, isGroupName } from "./group.ts";
export {
  type Question,
  type AudioContent,
  type CacheHints,
  type ClientCapabilities,
  type CompletionRef,
  type CompletionResult,
  type Content,
  type EmbeddedResource,
  type Icon,
  type ImageContent,
  type Implementation,
  isImplementation,
  isLogLevel,
  type LogLevel,
  logLevels,
  type Meta,
  type Prompt,
  type PromptArgument,
  type PromptMessage,
  type PromptResult,
  type Resource,
  type ResourceContents,
  type ResourceLink,
  type ResourceResult,
  type ResourceTemplate,
  type ServerCapabilities,
  strictestOf,
  type TextContent,
  type Tool,
  type ToolAnnotations,
  type ToolResult,
} from "./types.ts";
export { parseUriTemplate, type UriTemplate } from "./uri-template.ts";
