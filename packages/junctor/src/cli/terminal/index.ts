export { listenForCallback, openAddress, openInBrowser } from "./browser.ts";
export {
  type Command,
  commonFlags,
  configFlags,
  describeCommand,
  describeProgram,
  type Flags,
  parseCommandLine,
  type Parsed,
  parseInfoFlag,
  parsePort,
  refuseOperands,
  UsageError,
} from "./command.ts";
export { type Complaint, toComplaint } from "./complaint.ts";
export { hideEnvironment } from "./hide-environment.ts";
export { type Interruption, untilSignal, watchInterrupt } from "./interrupt.ts";
export { invocation } from "./invocation.ts";
export { withAdvice } from "./port-error.ts";
export { describeError, note, print, printBytes } from "./print.ts";
export { adviseOn, describeFaults, describeTrouble, ServerTrouble } from "./server-trouble.ts";
export { type AskLine, withTerminal } from "./terminal-lines.ts";
export { clipLine, toRows, toSafeLine, toSafeText } from "./terminal-text.ts";
export { createHideInText, diffLines } from "./text-diff.ts";
export { describeType, parseValue, toValueType, type ValueType } from "./value-type.ts";
