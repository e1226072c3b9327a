export { listenForCallback, openAddress, openInBrowser } from "./browser.ts";
export {
  describeCommand,
  describeProgram,
  describeType,
  guessCommand,
  lineWidth,
  parseCommandLine,
  parseInfoFlag,
  parsePort,
  parseValue,
  refuseOperands,
  runCommand,
  toValueType,
  UsageError,
  type ValueType,
  wrap,
} from "./command.ts";
export {
  type CommandName,
  commandNames,
  commands,
  commonFlags,
  type Completion,
  type FlagRow,
  flagsOf,
  type InnerCommandName,
  type Parsed,
  type ParsedOf,
  rowOf,
  type Run,
  type SharedValues,
} from "./commands.ts";
export { type Complaint, toComplaint, withAdvice } from "./complaint.ts";
export {
  type AskLine,
  clipLine,
  describeError,
  hideEnvironment,
  note,
  print,
  printBytes,
  toRows,
  toSafeLine,
  toSafeText,
  withTerminal,
} from "./print.ts";
export { type Interruption, untilSignal, watchInterrupt } from "./interrupt.ts";
export { adviseOn, describeFaults, describeTrouble, ServerTrouble } from "./server-trouble.ts";
export { createHideInText, diffLines } from "./text-diff.ts";
