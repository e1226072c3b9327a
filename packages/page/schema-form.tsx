import type { JSX, TargetedEvent } from "preact";
import { useState } from "preact/hooks";

/** A JSON Schema, as far as the forms of this page look at it. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly enumNames?: readonly string[];
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly items?: JsonSchema;
  readonly properties?: { readonly [name: string]: JsonSchema };
  readonly required?: readonly string[];
}

/** The value of a form that is being filled in: JSON, where a member that is left empty is undefined. */
export type FormValue = unknown;

interface FieldProps {
  readonly id: string;
  readonly label: string;
  readonly schema: JsonSchema;
  readonly value: FormValue;
  readonly isRequired: boolean;
  readonly onChange: (value: FormValue) => void;
}

/** A form for one value, made from its JSON Schema. A part it has no fields for is written as JSON. */
export function SchemaField(props: FieldProps): JSX.Element {
  const { schema, id, label, isRequired } = props;
  const kind = kindOf(schema);
  if (kind === "object") return <ObjectField {...props} />;
  const hint = schema.description === undefined ? undefined : `${id}-hint`;
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isRequired && <span class="required"> (required)</span>}
      </label>
      {hint !== undefined && (
        <p class="hint" id={hint}>
          {schema.description}
        </p>
      )}
      <Input {...props} kind={kind} hint={hint} />
    </div>
  );
}

type InputKind = "object" | "choice" | "boolean" | "number" | "string" | "strings" | "json";

function kindOf(schema: JsonSchema): InputKind {
  if (choicesOf(schema) !== undefined) return "choice";
  const types = typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
  const [type] = types.filter((each) => each !== "null");
  if (type === "object" && Object.keys(schema.properties ?? {}).length > 0) return "object";
  if (type === "boolean" || type === "string") return type;
  if (type === "number" || type === "integer") return "number";
  if (type === "array" && schema.items?.type === "string" && schema.items.enum === undefined)
    return "strings";
  return "json";
}

interface Choice {
  readonly value: unknown;
  readonly label: string;
}

/** The values to choose from: `enum`, or `oneOf` with constants and titles. */
function choicesOf(schema: JsonSchema): readonly Choice[] | undefined {
  if (schema.enum !== undefined)
    return schema.enum.map((value, i) => ({ value, label: schema.enumNames?.[i] ?? String(value) }));
  const titled = schema.oneOf ?? schema.anyOf;
  if (titled === undefined || titled.length === 0 || titled.some((each) => each.const === undefined))
    return undefined;
  return titled.map(({ const: value, title }) => ({ value, label: title ?? String(value) }));
}

function Input(
  props: FieldProps & { readonly kind: InputKind; readonly hint: string | undefined },
): JSX.Element {
  const { id, schema, value, onChange, kind, hint, isRequired } = props;
  const shared = { id, "aria-describedby": hint, "aria-required": isRequired };
  const typed = useTyped(kind === "number" ? numbers : json, value, onChange);
  switch (kind) {
    case "choice": {
      const choices = choicesOf(schema) ?? [];
      const chosen = choices.findIndex((choice) => choice.value === value);
      const onPick = (event: TargetedEvent<HTMLSelectElement>): void =>
        onChange(choices[Number(event.currentTarget.value)]?.value);
      return (
        <select {...shared} value={String(chosen)} onChange={onPick}>
          <option value="-1">–</option>
          {choices.map(({ label }, i) => (
            <option key={label} value={String(i)}>
              {label}
            </option>
          ))}
        </select>
      );
    }
    case "boolean":
      return (
        <select
          {...shared}
          value={typeof value === "boolean" ? String(value) : ""}
          onChange={(event) => onChange(toBoolean(event.currentTarget.value))}
        >
          <option value="">–</option>
          <option value="true">true</option>
          <option value="false">false</option>
        </select>
      );
    case "number":
      return (
        <input
          {...shared}
          {...typed}
          type="number"
          step={schema.type === "integer" ? 1 : "any"}
          min={schema.minimum}
          max={schema.maximum}
        />
      );
    case "string":
      return (
        <textarea
          {...shared}
          rows={1}
          value={typeof value === "string" ? value : ""}
          onInput={({ currentTarget }) =>
            onChange(currentTarget.value === "" ? undefined : currentTarget.value)
          }
        />
      );
    case "strings":
      return (
        <textarea
          {...shared}
          rows={2}
          placeholder="one a line"
          value={Array.isArray(value) ? value.join("\n") : ""}
          onInput={({ currentTarget }) => onChange(toLines(currentTarget.value))}
        />
      );
    default:
      return <textarea {...shared} {...typed} rows={3} placeholder="JSON" />;
  }
}

/** How values are written in a field, and read from it. */
interface Notation {
  readonly toText: (value: FormValue) => string;
  readonly parse: (text: string) => FormValue;
}

const numbers: Notation = {
  toText: (value) => (typeof value === "number" ? String(value) : ""),
  parse: (text) => (text === "" ? undefined : Number(text)),
};

const json: Notation = {
  toText: (value) =>
    value instanceof UnfinishedJson ? value.text : value === undefined ? "" : JSON.stringify(value),
  parse: toJson,
};

/** A number of so many digits may be rounded; the field then shows what is sent. */
const manyDigits = /\d{16}/;

/**
 * The attributes of a field whose text stands for a value. The text stays as it was typed: "1.0" would otherwise turn into "1"
 * before it can become "1.05".
 */
export function useTyped(
  { toText, parse }: Notation,
  value: FormValue,
  onChange: (value: FormValue) => void,
): {
  readonly value: string;
  readonly onInput: (event: TargetedEvent<HTMLInputElement | HTMLTextAreaElement>) => void;
} {
  const [typed, setTyped] = useState<string>();
  const text = toText(value);
  const isKept = typed !== undefined && !manyDigits.test(typed) && toText(parse(typed)) === text;
  return {
    value: isKept ? typed : text,
    onInput: ({ currentTarget }) => {
      setTyped(currentTarget.value);
      onChange(parse(currentTarget.value));
    },
  };
}

function toBoolean(text: string): boolean | undefined {
  return text === "" ? undefined : text === "true";
}

function toLines(text: string): readonly string[] | undefined {
  return text === "" ? undefined : text.split("\n");
}

/** Text of a JSON field that does not parse yet. */
export class UnfinishedJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export function toJson(text: string): FormValue {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return new UnfinishedJson(text);
  }
}

function ObjectField({ id, label, schema, value, onChange }: FieldProps): JSX.Element {
  return (
    <fieldset>
      <legend>{label}</legend>
      <SchemaFields id={id} schema={schema} value={value} onChange={onChange} />
    </fieldset>
  );
}

/** A field for each member of an object. */
export function SchemaFields(props: Pick<FieldProps, "id" | "schema" | "value" | "onChange">): JSX.Element {
  const { id, schema, value, onChange } = props;
  const members = isObject(value) ? value : {};
  return (
    <>
      {Object.entries(schema.properties ?? {}).map(([name, member]) => (
        <SchemaField
          key={name}
          id={`${id}-${name}`}
          label={member.title ?? name}
          schema={member}
          value={Object.hasOwn(members, name) ? members[name] : undefined}
          isRequired={schema.required?.includes(name) === true}
          onChange={(next) => onChange(withMember(members, name, next))}
        />
      ))}
    </>
  );
}

type Members = { readonly [name: string]: FormValue };

function isObject(value: FormValue): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A copy with own properties only, whatever the member is called; one that was emptied is gone. */
function withMember(members: Members, name: string, value: FormValue): FormValue {
  const rest = Object.entries(members).filter(([key]) => key !== name);
  return Object.fromEntries(value === undefined ? rest : [...rest, [name, value]]);
}

/** The defaults that a schema states. */
export function defaultsOf(schema: JsonSchema): FormValue {
  if (schema.default !== undefined) return schema.default;
  if (kindOf(schema) !== "object") return undefined;
  const given = Object.entries(schema.properties ?? {})
    .map(([name, member]) => [name, defaultsOf(member)] as const)
    .filter(([, value]) => value !== undefined);
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

/** Whether some field holds JSON that does not parse. */
export function isUnfinished(value: FormValue): boolean {
  if (value instanceof UnfinishedJson) return true;
  return typeof value === "object" && value !== null && Object.values(value).some(isUnfinished);
}
