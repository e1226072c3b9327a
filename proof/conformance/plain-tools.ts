import { setTimeout as sleep } from "node:timers/promises";
import { audio, embedResource, image, type Registry, text, ToolError } from "junctor";
import { contactSchema, pixelPng, silentWav } from "./samples.ts";

const stepMs = 50;

/** The tools that ask nobody anything. The first one takes no arguments: `http-header-validation` calls it with none. */
export function registerPlainTools(registry: Registry): void {
  registerContentTools(registry);
  registerTellingTools(registry);

  registry.register(
    "json_schema_2020_12_tool",
    { description: "Tool with JSON Schema 2020-12 features", input: contactSchema },
    (contact) => `Contact: ${JSON.stringify(contact)}`,
  );

  registry.register(
    "test_x_mcp_header",
    {
      description: "Wants its region repeated in the header Mcp-Param-Region",
      input: {
        type: "object",
        properties: { region: { type: "string", "x-mcp-header": "Region" }, level: { type: "integer" } },
      },
    },
    ({ region, level }) => `region=${JSON.stringify(region)}, level=${JSON.stringify(level)}`,
  );
}

function registerContentTools(registry: Registry): void {
  registry.register(
    "test_simple_text",
    { description: "Returns text" },
    () => "This is a simple text response for testing.",
  );
  registry.register("test_image_content", { description: "Returns an image" }, () =>
    image(pixelPng, "image/png"),
  );
  registry.register("test_audio_content", { description: "Returns audio" }, () =>
    audio(silentWav, "audio/wav"),
  );
  registry.register("test_embedded_resource", { description: "Returns an embedded resource" }, () =>
    embedResource("test://embedded-resource", "This is an embedded resource content.", "text/plain"),
  );
  registry.register(
    "test_multiple_content_types",
    { description: "Returns several kinds of content" },
    () => [
      text("Multiple content types test:"),
      image(pixelPng, "image/png"),
      embedResource(
        "test://mixed-content-resource",
        JSON.stringify({ test: "data", value: 123 }),
        "application/json",
      ),
    ],
  );
}

function registerTellingTools(registry: Registry): void {
  registry.register("test_error_handling", { description: "Always fails" }, () => {
    throw new ToolError("This tool intentionally returns an error for testing");
  });

  registry.register(
    "test_tool_with_logging",
    { description: "Logs three times while it works" },
    async (_, { log, signal }) => {
      await log("info", "Tool execution started");
      await sleep(stepMs, undefined, { signal });
      await log("info", "Tool processing data");
      await sleep(stepMs, undefined, { signal });
      await log("info", "Tool execution completed");
      return "Tool with logging executed successfully";
    },
  );

  registry.register("test_logging_tool", { description: "Logs once" }, async (_, { log }) => {
    await log("info", "Only those who asked for a log see this");
    return "Logged.";
  });

  registry.register(
    "test_tool_with_progress",
    { description: "Reports progress three times" },
    async (_, { progress, signal }) => {
      for (const done of [0, 50, 100]) {
        await progress(done, 100, `Completed step ${done} of 100`);
        await sleep(stepMs, undefined, { signal });
      }
      return "Tool with progress executed successfully";
    },
  );

  registry.register(
    "test_reconnection",
    { description: "Sends its caller away and answers when they are back" },
    async (_, { release, signal }) => {
      await release();
      await sleep(2 * stepMs, undefined, { signal });
      return "Reconnection test completed successfully";
    },
  );
}
