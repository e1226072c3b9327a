import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AskedQuestion } from "../junctor/src/admin/answers.ts";
import { Form, SchemaFields } from "./schema-form.tsx";
import { defaultsOf, type FormValue, type JsonSchema, findFaults } from "./schema.ts";

/** An answer in the shape the protocol wants. */
export interface QuestionAnswer {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: unknown;
}

interface QuestionsProps {
  readonly questions: { readonly [key: string]: AskedQuestion };
  readonly onAnswer: (answers: { readonly [key: string]: QuestionAnswer }) => void;
}

/** The questions of a tool, all in one form: they are answered together. */
export function Questions({ questions, onAnswer }: QuestionsProps): JSX.Element {
  const entries = Object.entries(questions);
  const schemaOf = (key: string): JsonSchema => questions[key]?.params?.requestedSchema ?? {};
  const [values, setValues] = useState<{ readonly [key: string]: FormValue }>(() =>
    Object.fromEntries(entries.map(([key]) => [key, defaultsOf(schemaOf(key), schemaOf(key)) ?? {}])),
  );
  const [isSubmitted, setSubmitted] = useState(false);
  const faults = entries.flatMap(([key]) => {
    const at = {
      id: `question-${key}`,
      label: "",
      root: schemaOf(key),
      isRequired: false,
      depth: 0,
      seen: [],
    };
    return findFaults(schemaOf(key), values[key], at);
  });
  const answer = (action: QuestionAnswer["action"]): void =>
    onAnswer(
      Object.fromEntries(
        entries.map(([key, { params }]) => {
          const hasContent = action === "accept" && params?.mode !== "url";
          return [key, hasContent ? { action, content: values[key] ?? {} } : { action }];
        }),
      ),
    );
  return (
    <form
      class="question"
      aria-label="The tool asks"
      onSubmit={(event) => {
        event.preventDefault();
        setSubmitted(true);
        if (faults.length === 0) answer("accept");
        else document.getElementById(faults[0]?.id ?? "")?.focus();
      }}
    >
      {entries.map(([key, { params, method }]) => (
        <fieldset key={key}>
          <legend>{params?.message ?? method}</legend>
          {params?.mode === "url" ? (
            <PageToVisit url={params.url ?? ""} />
          ) : (
            <Form.Provider
              value={{
                root: schemaOf(key),
                faults: new Map(isSubmitted ? faults.map(({ id, message }) => [id, message]) : []),
                onLeave: () => {},
              }}
            >
              <SchemaFields
                id={`question-${key}`}
                schema={schemaOf(key)}
                value={values[key]}
                onChange={(value) => setValues({ ...values, [key]: value })}
                depth={0}
                seen={[]}
              />
            </Form.Provider>
          )}
        </fieldset>
      ))}
      <div class="acts">
        <button type="submit" class="ink">
          Answer
        </button>
        <button type="button" onClick={() => answer("decline")}>
          Decline
        </button>
        <button type="button" onClick={() => answer("cancel")}>
          Cancel
        </button>
      </div>
    </form>
  );
}

/** The whole address is shown before it is opened, and only web addresses can be. */
function PageToVisit({ url }: { readonly url: string }): JSX.Element {
  if (!/^https?:\/\//i.test(url))
    return <p class="trouble">It wants to open an address that is not a web page: {url}</p>;
  return (
    <p>
      It wants you to visit{" "}
      <a href={url} target="_blank" rel="noopener noreferrer">
        {url}
      </a>
    </p>
  );
}
