import { createContext, type JSX, type TargetedEvent } from "preact";
import { useContext, useState } from "preact/hooks";
import { Icon } from "./icons.tsx";
import { Segments } from "./parts.tsx";
import {
  branchesOf,
  branchName,
  choicesOf,
  defaultsOf,
  describeType,
  type FieldKind,
  type FormValue,
  isObject,
  type JsonSchema,
  kindOf,
  labelOf,
  resolve,
  toJson,
  typesOf,
  UnfinishedJson,
  withMember,
} from "./schema.ts";

/** What fields need to know of the form they are in. */
interface FormParts {
  readonly root: JsonSchema;
  /** The faults to show, by the id of their field. */
  readonly faults: ReadonlyMap<string, string>;
  /** Called when a field loses the focus. */
  readonly onLeave: (id: string) => void;
}

export const Form = createContext<FormParts>({ root: {}, faults: new Map(), onLeave: () => {} });

interface FieldProps {
  readonly id: string;
  readonly label: string;
  readonly schema: JsonSchema | boolean;
  readonly value: FormValue;
  readonly isRequired: boolean;
  readonly onChange: (value: FormValue) => void;
  readonly depth: number;
  readonly seen: readonly string[];
  /** In a table the head of the column is the label. */
  readonly isBare?: boolean;
}

interface InputProps extends Omit<FieldProps, "schema"> {
  readonly schema: JsonSchema;
  readonly kind: FieldKind;
  readonly shared: {
    readonly id: string;
    readonly "aria-describedby": string | undefined;
    readonly "aria-invalid": boolean | undefined;
    readonly "aria-label"?: string;
  };
}

const groups: readonly FieldKind[] = ["object", "record", "boxes", "list", "union"];

/** A field for one value, made from its JSON Schema. What has no kind of field of its own is typed as JSON. */
export function SchemaField(props: FieldProps): JSX.Element {
  const { id, label, value, isRequired, depth, isBare = false } = props;
  const { root, faults, onLeave } = useContext(Form);
  const resolved = resolve(props.schema, root, props.seen);
  const { schema } = resolved;
  const kind = kindOf(resolved, root, depth);
  const fault = faults.get(id);
  const hint = schema.description === undefined || isBare ? undefined : `${id}-hint`;
  const wrong = fault === undefined ? undefined : `${id}-fault`;
  const described = [hint, wrong].filter(Boolean).join(" ");
  const shared = {
    id,
    "aria-describedby": described === "" ? undefined : described,
    "aria-invalid": fault === undefined ? undefined : true,
    ...(isBare ? { "aria-label": label } : {}),
  };
  const inner = { ...props, schema, seen: resolved.seen, kind, shared };
  const head = (
    <>
      {label}
      {!isRequired && <span class="optional"> optional</span>}
    </>
  );
  const type = <span class="type">{describeType(resolved, kind, root, value)}</span>;
  const rest = (
    <>
      {hint !== undefined && (
        <p class="hint" id={hint}>
          {schema.description}
        </p>
      )}
      <Input {...inner} />
      {fault !== undefined && (
        <p class="fault" id={wrong}>
          <Icon name="danger" size={12} /> {fault}
        </p>
      )}
    </>
  );
  if (groups.includes(kind))
    return (
      <fieldset class={`field group ${kind} ${depth === 1 ? "whole" : ""}`} id={id} tabIndex={-1}>
        <legend>
          {head}
          {type}
        </legend>
        {rest}
      </fieldset>
    );
  const isSwitch = kind === "boolean" && (isRequired || schema.default !== undefined) && !isBare;
  if (isSwitch)
    return (
      <div class="field switch-row">
        <Input {...inner} />
        <label for={id}>{label}</label>
        {hint !== undefined && (
          <p class="hint" id={hint}>
            {schema.description}
          </p>
        )}
      </div>
    );
  const isWide = kind === "json" || kind === "file" || isLong(schema, label);
  return (
    <div
      class={`field ${isWide ? "whole" : ""} ${kind === "boolean" ? "boolean" : ""}`}
      onFocusOut={() => onLeave(id)}
    >
      {!isBare && (
        <div class="label-row">
          <label for={id}>{head}</label>
          {type}
        </div>
      )}
      {rest}
    </div>
  );
}

/** Whether a text needs more than one line. */
function isLong({ maxLength, format }: JsonSchema, label: string): boolean {
  if (format !== undefined) return false;
  return (
    (maxLength ?? 0) > 120 ||
    (maxLength === undefined &&
      /\b(?:text|body|sql|query|content|prompt|message|description|code|script|statement)\b/i.test(
        label.replaceAll("_", " "),
      ))
  );
}

function Input(props: InputProps): JSX.Element {
  switch (props.kind) {
    case "const":
      return (
        <output id={props.id} class="const">
          {JSON.stringify(props.schema.const)}
        </output>
      );
    case "choice":
      return <ChoiceInput {...props} />;
    case "boolean":
      return <BooleanInput {...props} />;
    case "number":
    case "json":
      return <TypedInput {...props} />;
    case "string":
      return <TextInput {...props} />;
    case "file":
      return <FileInput {...props} />;
    case "object":
      return <SchemaFields {...props} />;
    case "record":
      return <RecordInput {...props} />;
    case "boxes":
      return <BoxesInput {...props} />;
    case "list":
      return <ListInput {...props} />;
    case "union":
      return <UnionInput {...props} />;
  }
}

function ChoiceInput({ id, label, schema, value, isRequired, onChange, shared }: InputProps): JSX.Element {
  const choices = choicesOf(schema) ?? [];
  const chosen = choices.findIndex((choice) => choice.value === value);
  if (choices.length <= 4 && choices.every((choice) => choice.label.length <= 16))
    return (
      <div id={id} tabIndex={-1}>
        <Segments
          label={label}
          value={String(chosen)}
          options={choices.map((choice, i) => ({ value: String(i), label: choice.label }))}
          onChange={(next) =>
            onChange(!isRequired && next === String(chosen) ? undefined : choices[Number(next)]?.value)
          }
        />
      </div>
    );
  if (choices.length > 12)
    return (
      <>
        <input
          {...shared}
          list={`${id}-choices`}
          autocomplete="off"
          value={chosen < 0 ? (typeof value === "string" ? value : "") : choices[chosen]?.label}
          onInput={({ currentTarget }) => {
            const typed = currentTarget.value;
            onChange(
              typed === "" ? undefined : (choices.find((choice) => choice.label === typed)?.value ?? typed),
            );
          }}
        />
        <datalist id={`${id}-choices`}>
          {choices.map((choice, i) => (
            <option key={i} value={choice.label} />
          ))}
        </datalist>
      </>
    );
  return (
    <select
      {...shared}
      value={String(chosen)}
      onChange={({ currentTarget }) => onChange(choices[Number(currentTarget.value)]?.value)}
    >
      <option value="-1">not set</option>
      {choices.map((choice, i) => (
        <option key={i} value={String(i)}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}

function BooleanInput({ id, label, schema, value, isRequired, onChange, shared }: InputProps): JSX.Element {
  if (isRequired || schema.default !== undefined)
    return (
      <input
        {...shared}
        type="checkbox"
        role="switch"
        class="switch"
        checked={value === true}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
    );
  return (
    <div id={id} tabIndex={-1}>
      <Segments
        label={label}
        value={String(value)}
        options={[
          { value: "true", label: "yes" },
          { value: "false", label: "no" },
          { value: "undefined", label: "not sent" },
        ]}
        onChange={(next) => onChange(next === "undefined" ? undefined : next === "true")}
      />
    </div>
  );
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

/** A number with this many digits may be rounded; the field then shows what is sent. */
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

function TypedInput({ kind, schema, value, onChange, shared }: InputProps): JSX.Element {
  const typed = useTyped(kind === "number" ? numbers : json, value, onChange);
  if (kind === "number")
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
  return <textarea {...shared} {...typed} rows={3} class="code" placeholder="JSON" spellcheck={false} />;
}

const inputTypes: { readonly [format: string]: JSX.IntrinsicElements["input"] } = {
  date: { type: "date" },
  "date-time": { type: "datetime-local", step: 1 },
  time: { type: "time", step: 1 },
  email: { type: "email" },
  password: { type: "password" },
};

function TextInput({ label, schema, value, onChange, shared }: InputProps): JSX.Element {
  const text = typeof value === "string" ? value : "";
  const { format = "" } = schema;
  const onInput = ({ currentTarget }: TargetedEvent<HTMLInputElement | HTMLTextAreaElement>): void => {
    const typed = currentTarget.value;
    onChange(typed === "" ? undefined : format === "date-time" ? toDateTime(typed) : typed);
  };
  if (isLong(schema, label))
    return <textarea {...shared} rows={3} class="growing" value={text} onInput={onInput} />;
  const type = Object.hasOwn(inputTypes, format) ? inputTypes[format] : undefined;
  return (
    <input
      {...shared}
      {...type}
      autocomplete="off"
      spellcheck={false}
      value={format === "date-time" ? toLocalDateTime(text) : text}
      onInput={onInput}
    />
  );
}

/** A field for a date and a time has no time zone: the zone is that of this computer. */
function toDateTime(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? local : at.toISOString();
}

function toLocalDateTime(text: string): string {
  const at = new Date(text);
  if (text === "" || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** A larger file would not fit into the body of a request. */
const maxFileBytes = 2 * 1024 * 1024;

function FileInput({ value, onChange, shared }: InputProps): JSX.Element {
  const [note, setNote] = useState("");
  const take = (file: File | undefined): void => {
    if (file === undefined) return;
    if (file.size > maxFileBytes) return setNote(`${file.name} is larger than 2 MB.`);
    const reader = new FileReader();
    reader.addEventListener("load", () => {
      if (typeof reader.result === "string") onChange(reader.result.replace(/^[^,]*,/, ""));
      setNote(`${file.name}, ${file.size} bytes`);
    });
    reader.readAsDataURL(file);
  };
  return (
    <div
      class="drop"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        take(event.dataTransfer?.files[0]);
      }}
    >
      <input {...shared} type="file" onChange={({ currentTarget }) => take(currentTarget.files?.[0])} />
      <span class="quiet">
        {note !== ""
          ? note
          : typeof value === "string"
            ? `${value.length} characters of base64`
            : "or drop one here"}
      </span>
    </div>
  );
}

/** A field for each member of an object. */
export function SchemaFields(
  props: Pick<FieldProps, "id" | "value" | "onChange" | "depth" | "seen"> & { readonly schema: JsonSchema },
): JSX.Element {
  const { id, schema, value, onChange, depth, seen } = props;
  const members = isObject(value) ? value : {};
  return (
    <div class="fields">
      {Object.entries(schema.properties ?? {}).map(([name, member]) => (
        <SchemaField
          key={name}
          id={`${id}-${name}`}
          label={labelOf(name, member)}
          schema={member}
          value={Object.hasOwn(members, name) ? members[name] : undefined}
          isRequired={schema.required?.includes(name) === true}
          onChange={(next) => onChange(withMember(members, name, next))}
          depth={depth + 1}
          seen={seen}
        />
      ))}
    </div>
  );
}

/** Names and values that the schema does not know beforehand. */
function RecordInput({ id, schema, value, onChange, depth, seen }: InputProps): JSX.Element {
  const [rows, setRows] = useState<readonly (readonly [string, FormValue])[]>(() =>
    isObject(value) ? Object.entries(value) : [],
  );
  const set = (next: typeof rows): void => {
    setRows(next);
    const named = next.filter(([name, each]) => name !== "" && each !== undefined);
    onChange(named.length === 0 ? undefined : Object.fromEntries(named));
  };
  return (
    <>
      {rows.map(([name, each], i) => (
        <div key={i} class="pair">
          <input
            aria-label={`Name ${i + 1}`}
            value={name}
            placeholder="name"
            onInput={({ currentTarget }) => set(rows.with(i, [currentTarget.value, each]))}
          />
          <SchemaField
            id={`${id}-${i}`}
            label={`Value ${i + 1}`}
            schema={schema.additionalProperties ?? {}}
            value={each}
            isRequired
            isBare
            onChange={(next) => set(rows.with(i, [name, next]))}
            depth={depth + 1}
            seen={seen}
          />
          <RemoveButton
            label={`Remove ${name === "" ? `row ${i + 1}` : name}`}
            onClick={() => set(rows.toSpliced(i, 1))}
          />
        </div>
      ))}
      <AddButton label="Add a value" onClick={() => set([...rows, ["", undefined]])} />
    </>
  );
}

function BoxesInput({ id, schema, value, onChange }: InputProps): JSX.Element {
  const { root } = useContext(Form);
  const [words, setWords] = useState("");
  const choices = choicesOf(resolve(schema.items, root).schema) ?? [];
  const chosen = Array.isArray(value) ? (value as unknown[]) : [];
  const toggle = (choice: unknown): void => {
    const next = chosen.includes(choice)
      ? chosen.filter((each) => each !== choice)
      : choices.map((each) => each.value).filter((each) => each === choice || chosen.includes(each));
    onChange(next.length === 0 ? undefined : next);
  };
  return (
    <>
      {choices.length > 8 && (
        <input
          type="search"
          aria-label="Filter the choices"
          placeholder="Filter"
          value={words}
          onInput={({ currentTarget }) => setWords(currentTarget.value)}
        />
      )}
      <div class="boxes">
        {choices.map(({ value: each, label }, i) =>
          label.toLowerCase().includes(words.toLowerCase()) ? (
            <label key={i} class="check">
              <input
                type="checkbox"
                id={`${id}-${i}`}
                checked={chosen.includes(each)}
                onChange={() => toggle(each)}
              />
              {label}
            </label>
          ) : null,
        )}
      </div>
    </>
  );
}

/** Objects with more members than this stand one below the other, not in a table. */
const maxColumns = 4;

function ListInput(props: InputProps): JSX.Element {
  const { id, label, schema, value, onChange, depth, seen } = props;
  const { root } = useContext(Form);
  const items = resolve(schema.items, root, seen);
  const list = Array.isArray(value) ? (value as FormValue[]) : [];
  const set = (next: readonly FormValue[]): void => onChange(next.length === 0 ? undefined : next);
  const move = (from: number, by: number): void => {
    const to = from + by;
    if (to >= 0 && to < list.length) set(list.toSpliced(from, 1).toSpliced(to, 0, list[from]));
  };
  const members = Object.entries(items.schema.properties ?? {});
  const isTable =
    kindOf(items, root, depth + 1) === "object" &&
    members.length <= maxColumns &&
    members.every(([, member]) =>
      ["string", "number", "boolean", "choice"].includes(
        kindOf(resolve(member, root, items.seen), root, depth + 2),
      ),
    );
  const one = singular(label);
  return (
    <div class={isTable ? "object-table" : "list-rows"}>
      {isTable && list.length > 0 && (
        <div class="row heads" aria-hidden="true">
          {members.map(([name, member]) => (
            <span key={name}>{labelOf(name, member)}</span>
          ))}
        </div>
      )}
      {list.map((item, i) => (
        <div
          key={i}
          class="row"
          role="group"
          aria-label={`${one} ${i + 1}`}
          onKeyDown={(event) => {
            const by = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
            if (!event.altKey || by === 0) return;
            event.preventDefault();
            move(i, by);
          }}
        >
          {isTable ? (
            members.map(([name, member]) => (
              <SchemaField
                key={name}
                id={`${id}-${i}-${name}`}
                label={`${labelOf(name, member)} of ${one} ${i + 1}`}
                schema={member}
                value={isObject(item) && Object.hasOwn(item, name) ? item[name] : undefined}
                isRequired={items.schema.required?.includes(name) === true}
                isBare
                onChange={(next) => set(list.with(i, withMember(isObject(item) ? item : {}, name, next)))}
                depth={depth + 2}
                seen={items.seen}
              />
            ))
          ) : (
            <SchemaField
              id={`${id}-${i}`}
              label={`${one} ${i + 1}`}
              schema={schema.items ?? {}}
              value={item}
              isRequired
              isBare={items.schema.properties === undefined}
              onChange={(next) => set(list.with(i, next))}
              depth={depth + 1}
              seen={seen}
            />
          )}
          <RemoveButton label={`Remove ${one} ${i + 1}`} onClick={() => set(list.toSpliced(i, 1))} />
        </div>
      ))}
      <AddButton
        label={`Add ${one.toLowerCase()}`}
        onClick={() => set([...list, defaultsOf(schema.items, root) ?? emptyOf(items.schema)])}
      />
    </div>
  );
}

/** The value of a new row, so that the list has it before it is filled in. */
function emptyOf(schema: JsonSchema): FormValue {
  const [type] = typesOf(schema);
  return type === "object" || schema.properties !== undefined
    ? {}
    : type === "string"
      ? ""
      : type === "array"
        ? []
        : null;
}

function singular(label: string): string {
  return label.length > 3 && label.endsWith("s") && !label.endsWith("ss") ? label.slice(0, -1) : label;
}

function RemoveButton({
  label,
  onClick,
}: {
  readonly label: string;
  readonly onClick: () => void;
}): JSX.Element {
  return (
    <button type="button" class="ghost small icon-only" aria-label={label} onClick={onClick}>
      <Icon name="close" size={14} />
    </button>
  );
}

function AddButton({
  label,
  onClick,
}: {
  readonly label: string;
  readonly onClick: () => void;
}): JSX.Element {
  return (
    <button type="button" class="ghost add" onClick={onClick}>
      <Icon name="plus" size={14} /> {label}
    </button>
  );
}

/** One of several shapes. Each keeps what was typed into it. */
function UnionInput(props: InputProps): JSX.Element {
  const { id, label, schema, value, onChange, depth, seen, isRequired } = props;
  const { root } = useContext(Form);
  const branches = branchesOf(schema);
  const [at, setAt] = useState<number>(() => (value === undefined && !isRequired ? -1 : 0));
  const [kept, setKept] = useState<{ readonly [branch: number]: FormValue }>({});
  const branch = branches[at];
  const choose = (next: string): void => {
    const to = next === String(at) && !isRequired ? -1 : Number(next);
    setKept({ ...kept, [at]: value });
    setAt(to);
    onChange(to < 0 ? undefined : (kept[to] ?? defaultsOf(branches[to], root, depth, seen)));
  };
  return (
    <>
      <Segments
        label={label}
        value={String(at)}
        options={branches.map((each, i) => ({ value: String(i), label: branchName(each, root, i) }))}
        onChange={choose}
      />
      {branch !== undefined && (
        <div class="branch">
          <SchemaField
            key={at}
            id={`${id}-${at}`}
            label={branchName(branch, root, at)}
            schema={branch}
            value={value}
            isRequired
            isBare
            onChange={onChange}
            depth={depth + 1}
            seen={seen}
          />
        </div>
      )}
    </>
  );
}
