import { setTimeout as sleep } from "node:timers/promises";
import {
  completable,
  fromJsonSchema,
  inputRequired,
  McpServer,
  type McpServerFactory,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import { contactSchema, pixelPng, silentWav } from "./samples.ts";
import {
  form,
  registerInputRequiredTools,
  registerPushingTools,
  reportProgress,
  requestState,
  sampling,
  text,
} from "./sdk-v2-asking.ts";

/** How the servers of a process announce that their lists changed. */
export interface Announcer {
  toolsChanged(): void;
  promptsChanged(): void;
}

const stepMs = 50;
const png = { type: "image" as const, data: pixelPng, mimeType: "image/png" };

/** The contract of the suite's everything-server, over the official SDK v2. One server serves one era. */
export function createSdkV2Factory(announcer?: Announcer): McpServerFactory {
  return ({ era }) => {
    const server = new McpServer(
      { name: "sdk-v2-everything", version: "1.0.0" },
      {
        capabilities: {
          logging: {},
          completions: {},
          tools: { listChanged: true },
          prompts: { listChanged: true },
          resources: { subscribe: true, listChanged: true },
        },
        requestState,
      },
    );
    registerContentTools(server);
    registerTellingTools(server);
    registerSchemaTools(server);
    registerPushingTools(server);
    registerInputRequiredTools(server);
    registerChangingTools(server, announcer);
    registerResources(server);
    registerPrompts(server);
    if (era === "legacy") {
      server.server.setRequestHandler("resources/subscribe", () => ({}));
      server.server.setRequestHandler("resources/unsubscribe", () => ({}));
    }
    return server;
  };
}

function registerContentTools(server: McpServer): void {
  // The first tool takes no arguments: `http-header-validation` calls it with none.
  server.registerTool("test_simple_text", { description: "Returns text" }, () =>
    text("This is a simple text response for testing."),
  );
  server.registerTool("test_image_content", { description: "Returns an image" }, () => ({ content: [png] }));
  server.registerTool("test_audio_content", { description: "Returns audio" }, () => ({
    content: [{ type: "audio", data: silentWav, mimeType: "audio/wav" }],
  }));
  server.registerTool("test_embedded_resource", { description: "Returns an embedded resource" }, () => {
    const uri = "test://embedded-resource";
    const resource = { uri, mimeType: "text/plain", text: "This is an embedded resource content." };
    return { content: [{ type: "resource", resource }] };
  });
  server.registerTool(
    "test_multiple_content_types",
    { description: "Returns several kinds of content" },
    () => {
      const uri = "test://mixed-content-resource";
      const resource = {
        uri,
        mimeType: "application/json",
        text: JSON.stringify({ test: "data", value: 123 }),
      };
      return {
        content: [
          { type: "text", text: "Multiple content types test:" },
          png,
          { type: "resource", resource },
        ],
      };
    },
  );
}

function registerTellingTools(server: McpServer): void {
  server.registerTool("test_error_handling", { description: "Always fails" }, () => {
    throw new Error("This tool intentionally returns an error for testing");
  });

  server.registerTool(
    "test_tool_with_logging",
    { description: "Logs three times while it works" },
    async ({ mcpReq }) => {
      for (const step of ["execution started", "processing data", "execution completed"]) {
        await mcpReq.log("info", `Tool ${step}`);
        await sleep(stepMs);
      }
      return text("Tool with logging executed successfully");
    },
  );

  server.registerTool("test_logging_tool", { description: "Logs once" }, async ({ mcpReq }) => {
    await mcpReq.log("info", "Only callers that asked for a log see this");
    return text("Logged.");
  });

  server.registerTool(
    "test_tool_with_progress",
    { description: "Reports progress three times" },
    async ({ mcpReq }) => {
      for (const progress of [0, 50, 100]) {
        await reportProgress(mcpReq, progress, 100);
        await sleep(stepMs);
      }
      return text("Tool with progress executed successfully");
    },
  );

  server.registerTool(
    "test_reconnection",
    { description: "Closes its stream and answers on the resumed one" },
    async ({ http }) => {
      http?.closeSSE?.();
      await sleep(2 * stepMs);
      return text("Reconnection test completed successfully");
    },
  );
}

function registerSchemaTools(server: McpServer): void {
  server.registerTool(
    "json_schema_2020_12_tool",
    { description: "Tool with JSON Schema 2020-12 features", inputSchema: fromJsonSchema(contactSchema) },
    (contact) => text(`Contact: ${JSON.stringify(contact)}`),
  );

  const region = { type: "string" as const, "x-mcp-header": "Region" };
  const inputSchema = fromJsonSchema<{ region?: string; level?: number }>({
    type: "object",
    properties: { region, level: { type: "integer" } },
  });
  server.registerTool(
    "test_x_mcp_header",
    { description: "Wants its region repeated in the header Mcp-Param-Region", inputSchema },
    ({ region, level }) => text(`region=${JSON.stringify(region)}, level=${JSON.stringify(level)}`),
  );

  // The SDK itself refuses to ask a caller for what it did not declare.
  server.registerTool(
    "test_missing_capability",
    { description: "Refuses callers that did not declare sampling" },
    ({ mcpReq }) =>
      mcpReq.inputResponses?.["reply"] === undefined
        ? inputRequired({ inputRequests: { reply: sampling("Say hello", 10) } })
        : text("The caller declared sampling."),
  );
}

/** Lists that change and change back: callers that listen are told, and the next scenario finds what it expects. */
function registerChangingTools(server: McpServer, announcer: Announcer | undefined): void {
  server.registerTool("test_trigger_tool_change", { description: "Changes the list of tools" }, () => {
    if (announcer === undefined) server.sendToolListChanged();
    else announcer.toolsChanged();
    return text("The list of tools changed.");
  });
  server.registerTool("test_trigger_prompt_change", { description: "Changes the list of prompts" }, () => {
    if (announcer === undefined) server.sendPromptListChanged();
    else announcer.promptsChanged();
    return text("The list of prompts changed.");
  });
}

function registerResources(server: McpServer): void {
  const plain = { mimeType: "text/plain" };
  server.registerResource(
    "Static text",
    "test://static-text",
    { ...plain, description: "A text that never changes" },
    ({ href: uri }) => ({
      contents: [{ ...plain, uri, text: "This is the content of the static text resource." }],
    }),
  );
  server.registerResource(
    "Static binary",
    "test://static-binary",
    { mimeType: "image/png", description: "An image that never changes" },
    ({ href: uri }) => ({ contents: [{ uri, mimeType: "image/png", blob: pixelPng }] }),
  );
  server.registerResource(
    "Watched resource",
    "test://watched-resource",
    { ...plain, description: "A text to subscribe to" },
    ({ href: uri }) => ({ contents: [{ ...plain, uri, text: "Watched resource content" }] }),
  );
  const json = { mimeType: "application/json" };
  server.registerResource(
    "Template",
    new ResourceTemplate("test://template/{id}/data", { list: undefined }),
    { ...json, description: "Data for any id" },
    ({ href: uri }, { id }) => {
      const data = { id, templateTest: true, data: `Data for ID: ${String(id)}` };
      return { contents: [{ ...json, uri, text: JSON.stringify(data) }] };
    },
  );
}

function registerPrompts(server: McpServer): void {
  const user = <Content>(content: Content): { role: "user"; content: Content } => ({ role: "user", content });
  const words = (value: string): { type: "text"; text: string } => ({ type: "text", text: value });

  server.registerPrompt("test_simple_prompt", { description: "A prompt without arguments" }, () => ({
    messages: [user(words("This is a simple prompt for testing."))],
  }));

  const place = completable(z.string(), (typed) =>
    ["paris", "park", "party"].filter((name) => name.startsWith(typed)),
  );
  server.registerPrompt(
    "test_prompt_with_arguments",
    { description: "A prompt with two arguments", argsSchema: z.object({ arg1: place, arg2: place }) },
    ({ arg1, arg2 }) => ({
      messages: [user(words(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
    }),
  );

  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    {
      description: "A prompt that brings a resource",
      argsSchema: z.object({ resourceUri: z.string() }),
    },
    ({ resourceUri: uri }) => {
      const resource = { uri, mimeType: "text/plain", text: "Embedded resource content for testing." };
      return {
        messages: [
          user({ type: "resource" as const, resource }),
          user(words("Please process the embedded resource above.")),
        ],
      };
    },
  );

  server.registerPrompt("test_prompt_with_image", { description: "A prompt that brings an image" }, () => ({
    messages: [user(png), user(words("Please analyze the image above."))],
  }));

  server.registerPrompt(
    "test_input_required_result_prompt",
    { description: "A prompt that asks for its context" },
    ({ mcpReq }) => {
      const answer = mcpReq.inputResponses?.["user_context"];
      if (answer !== undefined)
        return { messages: [user(words(`Use this context: ${JSON.stringify(answer)}`))] };
      const user_context = form("What context should the prompt use?", { context: { type: "string" } });
      return inputRequired({ inputRequests: { user_context } });
    },
  );
}
