import { randomBytes } from "node:crypto";
import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createRequestStateCodec,
  type ElicitRequestFormParams,
  type ElicitResult,
  type InputRequest,
  inputRequired,
  type InputRequiredResult,
  inputResponse,
  type McpServer,
  type ServerContext,
  type ServerOptions,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import { fieldsWithChoices, fieldsWithDefaults } from "./samples.ts";

type Text = { content: { type: "text"; text: string }[] };
type Fields = { readonly [field: string]: object };

const codec = createRequestStateCodec({ key: randomBytes(32) });

/** Seals the state that callers carry for a tool. */
export const requestState: NonNullable<ServerOptions["requestState"]> = { verify: codec.verify };

const nameField = { name: { type: "string" } };
const askName = form("What is your name?", nameField);
const askOk = form("Please confirm", { ok: { type: "boolean" } });

function formParams(message: string, properties: Fields): ElicitRequestFormParams {
  const requestedSchema = { type: "object", properties, required: Object.keys(properties) };
  return { message, requestedSchema } as ElicitRequestFormParams;
}

/** A result of one text. */
export function text(value: string): Text {
  return { content: [{ type: "text", text: value }] };
}

/** Reports progress if the caller wants to know. */
export async function reportProgress(
  mcpReq: ServerContext["mcpReq"],
  progress: number,
  total: number,
): Promise<void> {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return;
  await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total } });
}

/** A question to the user, for an `input_required` result. */
export function form(message: string, properties: Fields): InputRequest {
  return inputRequired.elicit(formParams(message, properties));
}

/** A question to the caller's model, for an `input_required` result. */
export function sampling(prompt: string, maxTokens: number): InputRequest {
  return inputRequired.createMessage(samplingParams(prompt, maxTokens));
}

function samplingParams(
  prompt: string,
  maxTokens: number,
): Parameters<typeof inputRequired.createMessage>[0] {
  return { messages: [{ role: "user", content: { type: "text", text: prompt } }], maxTokens };
}

/**
 * The tools of the 2025 scenarios ask in the middle of the call. The SDK refuses that in the modern era, so they work
 * only where a legacy caller is served in its own era.
 */
export function registerPushingTools(server: McpServer): void {
  server.registerTool(
    "test_sampling",
    { description: "Asks the caller's model", inputSchema: z.object({ prompt: z.string() }) },
    async ({ prompt }, { mcpReq }) => {
      const { content } = await mcpReq.requestSampling(samplingParams(prompt, 100));
      return text(`LLM response: ${toText(content)}`);
    },
  );

  server.registerTool(
    "test_elicitation",
    { description: "Asks the user", inputSchema: z.object({ message: z.string() }) },
    async ({ message }, { mcpReq }) => {
      const fields = { response: { type: "string", description: "User's response" } };
      return text(`User response: ${describe(await mcpReq.elicitInput(formParams(message, fields)))}`);
    },
  );

  const registerForm = (name: string, description: string, fields: Fields): void => {
    server.registerTool(name, { description }, async ({ mcpReq }) => {
      const answer = await mcpReq.elicitInput(formParams("Please fill in the form", fields));
      return text(`Elicitation completed: ${describe(answer)}`);
    });
  };
  registerForm("test_elicitation_sep1034_defaults", "Asks with default values", fieldsWithDefaults);
  registerForm("test_elicitation_sep1330_enums", "Asks with every kind of choice", fieldsWithChoices);
}

/** The tools of the 2026-07-28 scenarios: each answers `input_required` until it has what it needs. */
export function registerInputRequiredTools(server: McpServer): void {
  registerOneQuestionTools(server);
  registerStateTools(server);

  server.registerTool(
    "test_input_required_result_capabilities",
    { description: "Asks only for what the caller declared" },
    ({ mcpReq }) => {
      const envelope: { readonly [key: string]: ClientCapabilities } = mcpReq.envelope ?? {};
      const { elicitation, sampling: model } = envelope[CLIENT_CAPABILITIES_META_KEY] ?? {};
      const asks = {
        ...(elicitation === undefined ? {} : { user_name: askName }),
        ...(model === undefined ? {} : { greeting: sampling("Generate a greeting", 50) }),
      };
      const isAnswered = (key: string): boolean =>
        inputResponse(mcpReq.inputResponses, key).kind !== "missing";
      if (Object.keys(asks).every(isAnswered)) return text("Everything asked for was answered.");
      return inputRequired({ inputRequests: asks });
    },
  );

  server.registerTool(
    "test_streaming_elicitation",
    { description: "Reports progress before it asks" },
    async ({ mcpReq }) => {
      await reportProgress(mcpReq, 1, 2);
      const name = readName(mcpReq);
      return name === undefined ? askFor({ user_name: askName }) : text(`Hello, ${name}!`);
    },
  );
}

function registerOneQuestionTools(server: McpServer): void {
  server.registerTool(
    "test_input_required_result_elicitation",
    { description: "Asks for a name" },
    ({ mcpReq }) => {
      const name = readName(mcpReq);
      return name === undefined ? askFor({ user_name: askName }) : text(`Hello, ${name}!`);
    },
  );

  server.registerTool(
    "test_input_required_result_sampling",
    { description: "Asks the caller's model" },
    ({ mcpReq }) => {
      const capital = inputResponse(mcpReq.inputResponses, "capital");
      if (capital.kind === "sampling") return text(`The model says: ${toText(capital.result.content)}`);
      return askFor({ capital: sampling("What is the capital of France?", 100) });
    },
  );

  server.registerTool(
    "test_input_required_result_list_roots",
    { description: "Asks for the user's folders" },
    ({ mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, "client_roots");
      if (answer.kind === "roots") return text(`Roots: ${answer.roots.map(({ uri }) => uri).join(", ")}`);
      return askFor({ client_roots: inputRequired.listRoots() });
    },
  );
}

function registerStateTools(server: McpServer): void {
  server.registerTool(
    "test_input_required_result_request_state",
    { description: "Asks, and checks that its state came back" },
    ({ mcpReq }) => {
      if (acceptedContent(mcpReq.inputResponses, "confirm") === undefined)
        return askFor({ confirm: askOk }, { step: "confirm" });
      const isBack = mcpReq.requestState<{ step?: string }>()?.step === "confirm";
      return text(isBack ? "state-ok" : "The state was lost.");
    },
  );

  server.registerTool(
    "test_input_required_result_tampered_state",
    { description: "Asks with a state that must not be altered" },
    ({ mcpReq }) =>
      acceptedContent(mcpReq.inputResponses, "confirm") === undefined
        ? askFor({ confirm: askOk }, { step: "confirm" })
        : text("The state is as it was."),
  );

  server.registerTool(
    "test_input_required_result_multiple_inputs",
    { description: "Asks three different things at once" },
    ({ mcpReq }) => {
      const name = readName(mcpReq);
      const greeting = inputResponse(mcpReq.inputResponses, "greeting");
      const folders = inputResponse(mcpReq.inputResponses, "client_roots");
      if (name !== undefined && greeting.kind === "sampling" && folders.kind === "roots")
        return text(`${toText(greeting.result.content)} ${name} has ${folders.roots.length} roots.`);
      const greet = sampling("Generate a greeting", 50);
      const asks = { user_name: askName, greeting: greet, client_roots: inputRequired.listRoots() };
      return askFor(asks, { round: 1 });
    },
  );

  server.registerTool(
    "test_input_required_result_multi_round",
    { description: "Asks one thing after the other" },
    ({ mcpReq }) => {
      const [name, color] = ["step1", "step2"].map((key) => acceptedContent(mcpReq.inputResponses, key));
      const round = mcpReq.requestState<{ round?: number }>()?.round ?? 1;
      if (round === 1 && name === undefined)
        return askFor({ step1: form("Step 1: What is your name?", nameField) }, { round: 1 });
      if (color === undefined) {
        const step2 = form("Step 2: What is your favorite color?", { color: { type: "string" } });
        return askFor({ step2 }, { round: 2 });
      }
      return text(`Both steps were answered, the second with ${JSON.stringify(color)}`);
    },
  );
}

async function askFor(
  inputRequests: { [key: string]: InputRequest },
  state?: object,
): Promise<InputRequiredResult> {
  if (state === undefined) return inputRequired({ inputRequests });
  return inputRequired({ inputRequests, requestState: await codec.mint(state) });
}

/** The name in the form; undefined until there is one. */
function readName({ inputResponses }: ServerContext["mcpReq"]): string | undefined {
  const answer = inputResponse(inputResponses, "user_name");
  if (answer.kind === "elicit" && answer.action !== "accept") return "stranger";
  return acceptedContent(inputResponses, "user_name", z.object({ name: z.string() }))?.name;
}

function describe({ action, content }: ElicitResult): string {
  return `action=${action}, content=${JSON.stringify(content ?? {})}`;
}

function toText(content: unknown): string {
  const blocks = (Array.isArray(content) ? content : [content]) as { type: string; text?: string }[];
  return blocks.map((block) => block.text ?? `[${block.type}]`).join("");
}
