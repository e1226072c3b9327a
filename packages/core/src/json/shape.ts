import { Buffer } from "node:buffer";

/** The keys that a scan looks for: `true` for a key whose value stays opaque, a tree to look inside it. */
export type ShapeTree = { readonly [key: string]: true | ShapeTree | LenientTree };

/** A tree made by {@link lenient}. */
interface LenientTree {
  readonly [LENIENT]: ShapeTree;
}

/** A {@link ShapeTree} made ready for {@link scan}: every key path has its place in the index. */
export interface Shape {
  readonly root: ShapeLevel;
  /** The index of a text in which no key was found. */
  readonly blank: readonly number[];
  /**
   * The place of a key path in the index; no path at all is the whole text. There the index holds three
   * byte offsets: of the key's opening quote, of the value's first byte, and after the value's last
   * byte; -1 each if the key is absent.
   *
   * @throws TypeError if the shape has no such path
   */
  slotOf(...path: readonly string[]): number;
}

/** The keys looked for in one object. */
export interface ShapeLevel {
  readonly isStrict: boolean;
  readonly byName: ReadonlyMap<string, ShapeKey>;
  readonly byFoldedName: ReadonlyMap<string, ShapeKey>;
  /** The keys that start with the ASCII character c are at place c. */
  readonly byFirstByte: readonly (readonly ShapeKey[] | undefined)[];
  /** A key written with more bytes than this, quotes included, is not one of ours in any spelling. */
  readonly maxSpelledBytes: number;
}

/** One key path of a shape. Its own keys, at all depths, have the slots after it up to `endSlot`. */
export interface ShapeKey {
  readonly name: string;
  /** The name between its quotes, as nearly everyone writes it. */
  readonly spelling: Uint8Array;
  readonly slot: number;
  readonly endSlot: number;
  readonly level: ShapeLevel | undefined;
}

const LENIENT: unique symbol = Symbol("lenient");

/** Numbers an index holds for one slot. */
const SLOT_SIZE = 3;

/** Printable ASCII, and nothing that JSON writes with an escape. */
const SHAPE_KEY = /^[ !#-[\]-~]+$/;

/** One code point of a key can be written with two `\uXXXX` escapes at most. */
const MAX_SPELLED_BYTES_PER_CHARACTER = 12;

/**
 * Declares which keys a scan looks for. Call it once, when a module loads.
 *
 * @throws TypeError if a key is not printable ASCII, or two keys of one object differ only in case
 * @example
 * const REQUEST = defineShape({ id: true, method: true, params: { name: true, arguments: true } });
 * const NAME = REQUEST.slotOf('params', 'name');
 */
export function defineShape(tree: ShapeTree | LenientTree): Shape {
  const slots = new SlotCounter();
  slots.take();
  const root = defineLevel(tree, slots);
  return {
    root,
    blank: Array.from({ length: slots.next }, () => -1),
    slotOf: (...path) => findSlot(root, path),
  };
}

/**
 * Makes one level of a shape ignore case variants of its keys, for objects whose keys are not all ours
 * to forbid. Duplicates of its keys are refused all the same; the levels inside it are strict again.
 */
export function lenient(tree: ShapeTree): LenientTree {
  return { [LENIENT]: tree };
}

/**
 * Two keys with the same folded form can be taken for each other by a parser that ignores case, as Go's
 * does (CVE-2026-27896). Upper-casing first also folds what lower-casing alone leaves: ſ, ı and ligatures.
 * İ becomes an i with a combining dot, which Java's comparison does not see.
 */
export function foldCase(key: string): string {
  return key.toUpperCase().toLowerCase().replaceAll("i\u0307", "i");
}

class SlotCounter {
  next = 0;

  take(): number {
    const slot = this.next;
    this.next += SLOT_SIZE;
    return slot;
  }
}

function defineLevel(tree: ShapeTree | LenientTree, slots: SlotCounter): ShapeLevel {
  const isStrict = !isLenient(tree);
  const byName = new Map<string, ShapeKey>();
  const byFoldedName = new Map<string, ShapeKey>();
  // Without holes: V8 reads a packed array faster than one with gaps.
  const byFirstByte = Array.from({ length: 128 }, (): ShapeKey[] | undefined => undefined);
  let longest = 0;
  for (const [name, child] of Object.entries(isLenient(tree) ? tree[LENIENT] : tree)) {
    if (!SHAPE_KEY.test(name)) throw new TypeError(`Shape key ${JSON.stringify(name)} is not plain ASCII`);
    if (byFoldedName.has(foldCase(name))) throw new TypeError(`Shape key "${name}" occurs in two cases`);
    const slot = slots.take();
    const level = child === true ? undefined : defineLevel(child, slots);
    const spelling = Buffer.from(`"${name}"`);
    const key: ShapeKey = { name, spelling, slot, endSlot: slots.next, level };
    byName.set(name, key);
    byFoldedName.set(foldCase(name), key);
    longest = Math.max(longest, name.length);
    (byFirstByte[name.charCodeAt(0)] ??= []).push(key);
  }
  const maxSpelledBytes = 2 + longest * MAX_SPELLED_BYTES_PER_CHARACTER;
  return { isStrict, byName, byFoldedName, byFirstByte, maxSpelledBytes };
}

function isLenient(tree: ShapeTree | LenientTree): tree is LenientTree {
  return LENIENT in tree;
}

function findSlot(root: ShapeLevel, path: readonly string[]): number {
  let level: ShapeLevel | undefined = root;
  let slot = 0;
  for (const name of path) {
    const key: ShapeKey | undefined = level?.byName.get(name);
    if (key === undefined) throw new TypeError(`The shape has no key path ${path.join(".")}`);
    slot = key.slot;
    level = key.level;
  }
  return slot;
}
