export { listenForCallback, openAddress, openInBrowser } from "./browser.ts";
export {
  describeCommand,
  describeProgram,
  guessCommand,
  lineWidth,
  parseCommandLine,
  parseInfoFlag,
  parsePort,
  refuseOperands,
  runCommand,
  UsageError,
  wrap,
} from "./command.ts";
export {
  type CommandName,
  commandNames,
  commands,
  type CommandRow,
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
  type Values,
} from "./commands.ts";
export { type Complaint, toComplaint } from "./complaint.ts";
export { hideEnvironment } from "./hide-environment.ts";
export { type Interruption, untilSignal, watchInterrupt } from "./interrupt.ts";
export { withAdvice } from "./port-error.ts";
export { describeError, note, print, printBytes } from "./print.ts";
export { adviseOn, describeFaults, describeTrouble, ServerTrouble } from "./server-trouble.ts";
export { type AskLine, withTerminal } from "./terminal-lines.ts";
export { clipLine, toRows, toSafeLine, toSafeText } from "./terminal-text.ts";
export { createHideInText, diffLines } from "./text-diff.ts";
export { describeType, parseValue, toValueType, type ValueType } from "./value-type.ts";
