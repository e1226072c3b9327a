import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { errorCatalogue } from "../scripts/error-catalogue.ts";
import { packageVersion } from "../src/options/version.ts";
import { hasSource, parseExports, readSource, root } from "./source-graph.ts";

// Every public name, types included, sorted. A change here is a change of the public interface: it belongs in
// CHANGELOG.md too.
const publicNames: Readonly<Record<string, readonly string[]>> = {
  "index.ts": [
    "AbortedError",
    "Agreement",
    "AllowToolsOptions",
    "Annotations",
    "AnswerReader",
    "Answers",
    "AppView",
    "AppViewSpec",
    "Apps",
    "Ask",
    "AskCaller",
    "AskHandlers",
    "AudioContent",
    "AuditError",
    "AuditFile",
    "AuditFileOptions",
    "AuditLogOptions",
    "AuditOptions",
    "AuditRecord",
    "AuditSink",
    "Authenticate",
    "Authenticated",
    "AuthorizationError",
    "AuthorizationOptions",
    "AuthorizationReason",
    "Authorizer",
    "BearerChallenge",
    "BindError",
    "CacheHints",
    "CallContext",
    "CallEnd",
    "CallEvent",
    "CallKind",
    "CallOptions",
    "CallPart",
    "Caller",
    "CallerLimits",
    "Change",
    "Channel",
    "ChildCommand",
    "Client",
    "ClientCapabilities",
    "ClientOptions",
    "ClientSkills",
    "ClientTask",
    "Clock",
    "ClosedError",
    "Collision",
    "Completer",
    "CompletionProvider",
    "CompletionRef",
    "CompletionRegistry",
    "CompletionRequest",
    "CompletionResult",
    "ComposeOptions",
    "Composite",
    "ConfigError",
    "ConfigIssue",
    "ConnectError",
    "ConnectKind",
    "ConnectOptions",
    "Content",
    "CredentialStore",
    "Delivery",
    "Elicited",
    "EmbeddedResource",
    "EnterpriseOptions",
    "EraCache",
    "EventStore",
    "EventStream",
    "FailedResult",
    "FailureCode",
    "FetchHandler",
    "FetchOptions",
    "FrontMatter",
    "Gateway",
    "GatewayLog",
    "GatewayOptions",
    "Guardian",
    "GuardianOptions",
    "HandlerResult",
    "HeaderSource",
    "Hearer",
    "HttpError",
    "HttpListener",
    "HttpOptions",
    "Icon",
    "ImageContent",
    "Implementation",
    "InferredInput",
    "InferredOutput",
    "InputRequired",
    "Issue",
    "Job",
    "JobStatus",
    "JsonError",
    "JsonErrorCode",
    "JsonSchema",
    "LegacyRevision",
    "LimitRateOptions",
    "LimitTimeOptions",
    "ListFault",
    "ListPart",
    "ListedItem",
    "ListenHttpOptions",
    "ListenLimits",
    "ListenTcpOptions",
    "Listener",
    "LoadSkillsOptions",
    "LoadedSkill",
    "LoadedSkills",
    "LogLevel",
    "MemoryEventStoreOptions",
    "MemoryTasks",
    "MemoryTasksOptions",
    "Message",
    "Meta",
    "Middleware",
    "MiddlewareOptions",
    "ModernRevision",
    "Mounts",
    "NotFoundError",
    "Notification",
    "OpenPage",
    "Outcome",
    "OutputResult",
    "Peer",
    "PeerOptions",
    "Prompt",
    "PromptArgument",
    "PromptContext",
    "PromptHandler",
    "PromptMessage",
    "PromptOutput",
    "PromptProvider",
    "PromptRegistry",
    "PromptRequest",
    "PromptResult",
    "Provider",
    "Rate",
    "RawJson",
    "ReadContext",
    "ReadOptions",
    "ReadResult",
    "ReadView",
    "Reads",
    "RedactOptions",
    "Registry",
    "RegistryOptions",
    "Request",
    "Resource",
    "ResourceChange",
    "ResourceContents",
    "ResourceLink",
    "ResourceProvider",
    "ResourceReader",
    "ResourceRegistry",
    "ResourceRequest",
    "ResourceResult",
    "ResourceTemplate",
    "Response",
    "Resumption",
    "Revision",
    "Root",
    "RpcError",
    "RpcErrorCode",
    "Sampled",
    "SchemaError",
    "SchemaErrorCode",
    "SchemaSource",
    "Seal",
    "SealError",
    "SealOptions",
    "SecretKind",
    "ServeOptions",
    "ServeStreamOptions",
    "Server",
    "ServerCapabilities",
    "ServerInfo",
    "ServerOptions",
    "ServerStatus",
    "SessionExpiredError",
    "Skill",
    "SkillError",
    "SkillErrorCode",
    "SkillFile",
    "SkillProvider",
    "SkillSource",
    "StartedCall",
    "StoredEvent",
    "StreamedCall",
    "StructuredResult",
    "StructuredValue",
    "Target",
    "TaskContext",
    "TaskHandler",
    "TaskOutcome",
    "TaskProgress",
    "TaskProvider",
    "TaskReport",
    "TaskRun",
    "TaskSpec",
    "TaskState",
    "TaskWait",
    "TextContent",
    "TimeoutError",
    "TimeoutKind",
    "Tool",
    "ToolAnnotations",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolErrorCode",
    "ToolErrorOptions",
    "ToolEvent",
    "ToolHandler",
    "ToolOutcome",
    "ToolResult",
    "ToolSpec",
    "Unapproved",
    "UnknownTool",
    "UpstreamError",
    "UpstreamReason",
    "UriTemplateError",
    "ValidationError",
    "ViewCsp",
    "ViewPermissions",
    "Visibility",
    "WireContext",
    "allowTools",
    "anybody",
    "audio",
    "auditLog",
    "compose",
    "connect",
    "connectInMemory",
    "createCallContext",
    "createCompletionRegistry",
    "createEraCache",
    "createGateway",
    "createGuardian",
    "createListenLimits",
    "createMemoryEventStore",
    "createMemoryPair",
    "createMemoryTasks",
    "createPromptRegistry",
    "createRegistry",
    "createResourceRegistry",
    "createSeal",
    "createServer",
    "createStreamChannel",
    "defineView",
    "elicit",
    "elicitUrl",
    "embedResource",
    "failure",
    "image",
    "inputRequired",
    "limitRate",
    "limitTime",
    "listRoots",
    "listenHttp",
    "listenTcp",
    "loadSkills",
    "missingCapability",
    "modelTools",
    "openAuditFile",
    "redact",
    "resourceLink",
    "sample",
    "serveChannel",
    "serveStdio",
    "serveStream",
    "structured",
    "text",
    "toFetchHandler",
    "withContext",
    "withJsonSchema",
    "withMiddleware",
  ],
  "testing/index.ts": [
    "QuestionParams",
    "Script",
    "TestAnswers",
    "TestClient",
    "TestOptions",
    "TestQuestion",
    "VirtualClock",
    "accepted",
    "cancelled",
    "connectForTest",
    "createAskingRegistry",
    "createVirtualClock",
    "declined",
    "sampled",
  ],
};

describe("the public interface", () => {
  test.each(Object.entries(publicNames))("src/%s exports exactly the listed names", (file, names) => {
    expect(parseExports(readSource(file))).toEqual(names);
  });

  test.each(Object.keys(publicNames))("src/%s loads", async (file) => {
    const module = (await import(join(root, "src", file))) as Record<string, unknown>;
    expect(Object.values(module)).not.toContain(undefined);
  });
});

test("every error of the catalogue can be told apart by its class", () => {
  expect(publicNames["index.ts"]).toEqual(expect.arrayContaining(Object.keys(errorCatalogue)));
});

describe("package.json", () => {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    bin: Record<string, string>;
    exports: Record<string, string | { types: string; default: string }>;
  };
  const entries = Object.entries(manifest.exports).flatMap(([subpath, target]) =>
    typeof target === "string" ? [] : [{ subpath, ...target }],
  );

  test.each(entries)("$subpath is built from a listed entry point", ({ types, default: code }) => {
    expect(Object.keys(publicNames)).toContain(sourceOf(code));
    expect(sourceOf(types)).toBe(sourceOf(code));
  });

  test.each(Object.entries(manifest.bin))("the command %s is built from src/", (_name, target) => {
    expect(hasSource(sourceOf(target))).toBe(true);
    expect(readSource(sourceOf(target))).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  test("every listed entry point is reachable", () => {
    expect(entries.map((entry) => sourceOf(entry.default)).toSorted()).toEqual(Object.keys(publicNames));
  });
});

describe("the check", () => {
  test("sees values, types and renamed names", () => {
    const code = `export { b, type A } from "./x.ts"; export type { C as D } from "./y.ts";`;
    expect(parseExports(code)).toEqual(["A", "D", "b"]);
  });

  test("refuses what would hide a name", () => {
    expect(() => parseExports(`export * from "./x.ts";`)).toThrow("list the names");
    expect(() => parseExports("export const a = 1;")).toThrow("own file");
  });
});

/** dist/cli/main.js → cli/main.ts */
function sourceOf(target: string): string {
  return target.replace(/^(\.\/)?dist\//, "").replace(/(\.d\.ts|\.js)$/, ".ts");
}

test("the version in the source is that of the package", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly version: string;
  };
  expect(packageVersion).toBe(version);
});
