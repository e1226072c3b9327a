/** The types that `$ref` leads to, by pointer. They are declared beside the type that refers to them. */
interface Named {
  readonly name: string;
  /** What it is declared as; undefined while it is being printed. */
  text: string | undefined;
  /** The named types that it directly consists of. TypeScript refuses a cycle of these, and no other. */
  readonly needs: Set<Named>;
}

/** A printed type, and the declarations that it needs. */
export interface PrintedType {
  readonly text: string;
  readonly declarations: readonly string[];
}

/** Deeper than this, or with more parts than this, a type is `unknown`: compilers have limits too. */
const maxDepth = 40;
const maxParts = 5000;
/** A longer enum is printed as the type of its values. */
const maxChoices = 200;
/** TypeScript multiplies unions that are intersected, and gives up at 100,000 members. */
const maxWidth = 2000;
/** The assumed number of members of a union that is still being printed. */
const usualWidth = 50;

/**
 * The TypeScript type of the values that fit a JSON Schema. What TypeScript cannot express, such as a minimum, is left out, so a type never
 * refuses a value that fits. Whatever the schema is, the text compiles. `nameFor` returns a name that is not taken yet.
 */
export function printType(schema: unknown, nameFor: (wanted: string) => string): PrintedType {
  const printer = new TypePrinter(schema, nameFor);
  const text = printer.print(schema, { indent: "  ", depth: 0, owner: undefined });
  return { text, declarations: printer.declarations() };
}

interface Place {
  readonly indent: string;
  readonly depth: number;
  /** The named type that would be in a cycle if it needed itself here; undefined inside an object or an array. */
  readonly owner: Named | undefined;
}

class TypePrinter {
  readonly #root: unknown;
  readonly #nameFor: (wanted: string) => string;
  readonly #named = new Map<string, Named>();
  /** How many members printed unions have. */
  readonly #widths = new Map<string, number>();
  #parts = 0;

  constructor(root: unknown, nameFor: (wanted: string) => string) {
    this.#root = root;
    this.#nameFor = nameFor;
  }

  declarations(): readonly string[] {
    return [...this.#named.values()].map(({ name, text = "unknown" }) => `type ${name} = ${text};`);
  }

  print(schema: unknown, place: Place): string {
    this.#parts++;
    if (schema === false) return "never";
    if (!isRecord(schema) || place.depth > maxDepth || this.#parts > maxParts) return "unknown";
    const deeper = { ...place, depth: place.depth + 1 };
    const { $ref, const: constant, enum: choices, allOf, anyOf, oneOf, nullable } = schema;
    const whole = this.#intersect([
      typeof $ref === "string" ? this.#printRef($ref, deeper) : "unknown",
      "const" in schema ? printLiteral(constant, 0) : "unknown",
      isShort(choices) ? this.#unite(choices.map((each) => printLiteral(each, 0))) : "unknown",
      this.#printTypes(schema, deeper),
      ...listOf(allOf).map((each) => this.print(each, deeper)),
      ...[anyOf, oneOf].map((each) =>
        isShort(each) ? this.#unite(each.map((choice) => this.print(choice, deeper))) : "unknown",
      ),
    ]);
    return nullable === true ? this.#unite([whole, "null"]) : whole;
  }

  /** Prints the keyword `type`; without it, an object if there are `properties`. */
  #printTypes(schema: { readonly [keyword: string]: unknown }, place: Place): string {
    const { type } = schema;
    if (Array.isArray(type))
      return this.#unite(type.slice(0, 8).map((each) => this.#printOne(each, schema, place)));
    if (type !== undefined) return this.#printOne(type, schema, place);
    if ("properties" in schema) return this.#printObject(schema, place);
    return "unknown";
  }

  #printOne(type: unknown, schema: { readonly [keyword: string]: unknown }, place: Place): string {
    // The choices say more than their type.
    if ("const" in schema || isShort(schema["enum"])) return "unknown";
    switch (type) {
      case "string":
      case "boolean":
      case "null":
        return type;
      case "number":
      case "integer":
        return "number";
      case "array":
        return this.#printArray(schema, place);
      case "object":
        return this.#printObject(schema, place);
      default:
        return "unknown";
    }
  }

  #printArray({ items, prefixItems }: { readonly [keyword: string]: unknown }, place: Place): string {
    const inside = { ...place, owner: undefined };
    const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    if (first.length === 0) return `readonly ${inBrackets(this.print(items, inside))}[]`;
    // A tuple may be shorter than its list of items.
    const members = first.slice(0, 50).map((each) => `(${this.print(each, inside)})?`);
    const rest = Array.isArray(items) ? "unknown" : this.print(items, inside);
    return `readonly [${[...members, `...${inBrackets(rest)}[]`].join(", ")}]`;
  }

  #printObject(schema: { readonly [keyword: string]: unknown }, place: Place): string {
    const { properties, required, additionalProperties, patternProperties } = schema;
    const inner = `${place.indent}  `;
    const inside = { ...place, indent: inner, owner: undefined };
    const needed = new Set(listOf(required).filter((name) => typeof name === "string"));
    const known = isRecord(properties) ? Object.entries(properties) : [];
    const lines = known.map(([name, each]) => {
      const optional = needed.has(name) ? "" : "?";
      return `${describe(each, inner)}${inner}${printKey(name)}${optional}: ${this.print(each, inside)};\n`;
    });
    const stated = new Set(known.map(([name]) => name));
    for (const name of [...needed].slice(0, 1000))
      if (!stated.has(name)) lines.push(`${inner}${printKey(name)}: unknown;\n`);
    const others = [
      ...(isRecord(patternProperties) ? Object.values(patternProperties) : []),
      ...(isRecord(additionalProperties) || additionalProperties === true ? [additionalProperties] : []),
    ];
    if (lines.length > 0) {
      // An index signature holds for the properties beside it, too.
      if (others.length > 0) lines.push(`${inner}[name: string]: unknown;\n`);
      return `{\n${lines.join("")}${place.indent}}`;
    }
    if (others.length > 0)
      return `{ [name: string]: ${this.#unite(others.map((each) => this.print(each, inside)))} }`;
    return additionalProperties === false ? "{ [name: string]: never }" : "{ [name: string]: unknown }";
  }

  #printRef(ref: string, { owner, depth }: Place): string {
    const found = resolve(this.#root, ref);
    if (found === undefined) return "unknown";
    const known = this.#named.get(ref);
    if (known !== undefined && owner !== undefined && reaches(known, owner)) return "unknown";
    const named = known ?? { name: this.#nameFor(found.wanted), text: undefined, needs: new Set<Named>() };
    owner?.needs.add(named);
    if (known === undefined) {
      this.#named.set(ref, named);
      named.text = this.print(found.schema, { indent: "", depth, owner: named });
    }
    return named.name;
  }

  /** A union with `unknown` is `unknown`. */
  #unite(types: readonly string[]): string {
    const distinct = [...new Set(types)];
    if (distinct.length === 0) return "never";
    if (distinct.includes("unknown")) return "unknown";
    const text = `(${distinct.map(inBrackets).join(" | ")})`;
    const width = distinct.reduce((sum, each) => sum + this.#widthOf(each), 0);
    this.#widths.set(text, width);
    return distinct.length === 1 ? (distinct[0] ?? "never") : text;
  }

  /** `unknown` adds nothing to an intersection. Parts that would make it too wide are left out. */
  #intersect(types: readonly string[]): string {
    let width = 1;
    const distinct = [...new Set(types)].filter((type) => {
      const wider = width * this.#widthOf(type);
      if (type === "unknown" || (width > 1 && wider > maxWidth)) return false;
      width = wider;
      return true;
    });
    if (distinct.length < 2) return distinct[0] ?? "unknown";
    const text = `(${distinct.map(inBrackets).join(" & ")})`;
    this.#widths.set(text, width);
    return text;
  }

  #widthOf(type: string): number {
    const named = [...this.#named.values()].find(({ name }) => name === type);
    if (named === undefined) return this.#widths.get(type) ?? 1;
    return named.text === undefined ? usualWidth : (this.#widths.get(named.text) ?? 1);
  }
}

function isShort(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length <= maxChoices;
}

/** Whether a value is an object that is not an array. */
export function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function reaches(from: Named, to: Named, seen: Set<Named> = new Set()): boolean {
  if (from === to) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return [...from.needs].some((next) => reaches(next, to, seen));
}

/** The schema that a pointer within the document refers to, and a name for it. */
function resolve(
  root: unknown,
  ref: string,
): { readonly schema: unknown; readonly wanted: string } | undefined {
  if (ref !== "#" && !ref.startsWith("#/")) return undefined;
  let schema = root;
  const tokens = ref.split("/").slice(1);
  for (const token of tokens) {
    const key = decode(token).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof schema !== "object" || schema === null || !Object.hasOwn(schema, key)) return undefined;
    schema = (schema as { readonly [key: string]: unknown })[key];
  }
  return { schema, wanted: tokens.at(-1) ?? "" };
}

function decode(token: string): string {
  try {
    return decodeURIComponent(token);
  } catch {
    return token;
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A value as a type; numbers that JSON cannot write are `number`. */
function printLiteral(value: unknown, depth: number): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "number";
  if (typeof value !== "object" || depth > 10) return "unknown";
  if (Array.isArray(value))
    return `readonly [${value.map((each) => printLiteral(each, depth + 1)).join(", ")}]`;
  const members = Object.entries(value).map(
    ([name, each]) => `${printKey(name)}: ${printLiteral(each, depth + 1)}`,
  );
  return members.length === 0 ? "{ [name: string]: never }" : `{ ${members.join("; ")} }`;
}

/** Makes a type usable within a larger one. Unions and intersections have brackets already. */
function inBrackets(type: string): string {
  return type.startsWith("readonly ") ? `(${type})` : type;
}

/** The name of a member. `__proto__` and the like need quotes as much as spaces do. */
export function printKey(name: string): string {
  return /^[a-z$][\w$]*$/i.test(name) ? name : JSON.stringify(name);
}

// C0, DEL, C1, and the marks that make text run the other way (CVE-2021-42574).
// oxlint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** The description of a schema as a comment with a line end; empty without one. Nothing in it can end the comment. */
export function describe(schema: unknown, indent: string): string {
  const description = isRecord(schema) ? (schema["description"] ?? schema["title"]) : undefined;
  if (typeof description !== "string") return "";
  const lines = description
    .slice(0, 2000)
    .replaceAll("*/", "*\\/")
    .split(/[\r\n\u2028\u2029]+/)
    .map((line) => line.replaceAll(unsafe, " ").trim())
    .filter((line) => line !== "");
  if (lines.length === 0) return "";
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join("")}${indent} */\n`;
}
