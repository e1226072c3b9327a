import * as table from "./table.ts";
import { type Crossing, crossings } from "./wire-rows.ts";

/** A row of the table, with what holds for all errors of its class. */
export interface ErrorEntry {
  readonly className: string;
  readonly code: string;
  readonly meaning: string;
  readonly advice: string;
  /** What each field of the class holds. */
  readonly fields: { readonly [name: string]: string };
  /** The JSON-RPC error code, for an error that crosses the wire as it is. */
  readonly number: number | undefined;
  /** How an error that is not an `RpcError` crosses the wire. */
  readonly crossing: Crossing | undefined;
  /** The HTTP status with which it is answered. */
  readonly status: number | undefined;
  /** The exit code of a command that fails with it. */
  readonly exit: number;
}

interface Row {
  readonly meaning: string;
  readonly advice: string;
  readonly number?: number;
  readonly status?: number;
  readonly exit?: number;
}

interface ClassRow {
  readonly fields: { readonly [name: string]: string };
  readonly exit?: number;
  readonly codes: { readonly [code: string]: Row };
}

/** The exit code of a command that could not reach a server. */
const usualExit = 3;

const rowsOfClasses: { readonly [name: string]: ClassRow } = table;

/** Every code of every error, by the name of its class. */
export const errorEntries: readonly ErrorEntry[] = Object.entries(rowsOfClasses)
  .toSorted(([a], [b]) => (a < b ? -1 : 1))
  .flatMap(([key, { fields, exit, codes }]) => {
    const className = key.charAt(0).toUpperCase() + key.slice(1);
    const crossing = (crossings as { readonly [name: string]: Crossing | undefined })[className];
    return Object.entries(codes).map(([code, row]) => ({
      className,
      code,
      meaning: row.meaning,
      advice: row.advice,
      fields,
      number: row.number,
      crossing,
      status: row.status ?? crossing?.status,
      exit: row.exit ?? exit ?? usualExit,
    }));
  });
