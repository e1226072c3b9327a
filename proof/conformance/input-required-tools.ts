import { elicit, inputRequired, listRoots, type Registry, type ToolContext } from "junctor";
import { sampleText, toText } from "./asking-tools.ts";

const askName = elicit("What is your name?", { name: { type: "string" } }, ["name"]);
const askOk = elicit("Please confirm", { ok: { type: "boolean" } }, ["ok"]);

/** The tools of the 2026-07-28 scenarios: each answers `input_required` until it has what it needs. */
export function registerInputRequiredTools(registry: Registry): void {
  registerOneQuestionTools(registry);
  registerStateTools(registry);

  registry.register(
    "test_input_required_result_capabilities",
    { description: "Asks only for what the client declared" },
    (_, { answers, capabilities }) => {
      const asks = {
        ...(capabilities.elicitation === undefined ? {} : { user_name: askName }),
        ...(capabilities.sampling === undefined ? {} : { greeting: sampleText("Generate a greeting", 50) }),
      };
      const isAnswered = (key: string): boolean =>
        (answers.elicited(key) ?? answers.sampled(key)) !== undefined;
      return Object.keys(asks).every(isAnswered) ? "Everything asked for was answered." : inputRequired(asks);
    },
  );

  registry.register(
    "test_streaming_elicitation",
    { description: "Reports progress before it asks" },
    async function* (_, context) {
      yield { type: "progress", progress: 1, total: 2, message: "Thinking of a question" };
      const name = readName(context, "user_name");
      return name === undefined ? inputRequired({ user_name: askName }) : `Hello, ${name}!`;
    },
  );
}

function registerOneQuestionTools(registry: Registry): void {
  registry.register(
    "test_input_required_result_elicitation",
    { description: "Asks for a name" },
    (_, context) => {
      const name = readName(context, "user_name");
      return name === undefined ? inputRequired({ user_name: askName }) : `Hello, ${name}!`;
    },
  );

  registry.register(
    "test_input_required_result_sampling",
    { description: "Asks the client's model" },
    (_, { answers }) => {
      const capital = answers.sampled("capital");
      if (capital === undefined)
        return inputRequired({ capital: sampleText("What is the capital of France?", 100) });
      return `The model says: ${toText(capital.content)}`;
    },
  );

  registry.register(
    "test_input_required_result_list_roots",
    { description: "Asks for the user's folders" },
    (_, { answers }) => {
      const roots = answers.roots("client_roots");
      if (roots === undefined) return inputRequired({ client_roots: listRoots() });
      return `Roots: ${roots.map((root) => root.uri).join(", ")}`;
    },
  );
}

function registerStateTools(registry: Registry): void {
  registry.register(
    "test_input_required_result_request_state",
    { description: "Asks, and checks that its state came back" },
    (_, { answers, state }) => {
      if (answers.elicited("confirm") === undefined)
        return inputRequired({ confirm: askOk }, { step: "confirm" });
      return hasStep(state, "confirm") ? "state-ok" : "The state was lost.";
    },
  );

  registry.register(
    "test_input_required_result_tampered_state",
    { description: "Asks with a state that must not be altered" },
    (_, { answers }) =>
      answers.elicited("confirm") === undefined
        ? inputRequired({ confirm: askOk }, { step: "confirm" })
        : "The state is as it was.",
  );

  registry.register(
    "test_input_required_result_multiple_inputs",
    { description: "Asks three different things at once" },
    (_, context) => {
      const name = readName(context, "user_name");
      const greeting = context.answers.sampled("greeting");
      const roots = context.answers.roots("client_roots");
      if (name === undefined || greeting === undefined || roots === undefined) {
        const greet = sampleText("Generate a greeting", 50);
        return inputRequired(
          { user_name: askName, greeting: greet, client_roots: listRoots() },
          { round: 1 },
        );
      }
      return `${toText(greeting.content)} ${name} has ${roots.length} roots.`;
    },
  );

  registry.register(
    "test_input_required_result_multi_round",
    { description: "Asks one thing after the other" },
    (_, { answers }) => {
      const [name, color] = [answers.elicited("step1"), answers.elicited("step2")];
      if (name === undefined) {
        const step1 = elicit("Step 1: What is your name?", { name: { type: "string" } }, ["name"]);
        return inputRequired({ step1 }, { round: 1 });
      }
      if (color === undefined) {
        const step2 = elicit("Step 2: What is your favorite color?", { color: { type: "string" } }, [
          "color",
        ]);
        return inputRequired({ step2 }, { round: 2 });
      }
      return `Both steps were answered: ${JSON.stringify([name, color])}`;
    },
  );
}

/** The name in a form; undefined while it was not given, also when what came is no name. */
function readName({ answers }: ToolContext, key: string): string | undefined {
  const answer = answers.elicited(key);
  if (answer === undefined) return undefined;
  if (answer.action !== "accept") return "stranger";
  const { name } = answer.content;
  return typeof name === "string" ? name : undefined;
}

function hasStep(state: unknown, step: string): boolean {
  return typeof state === "object" && state !== null && "step" in state && state.step === step;
}
