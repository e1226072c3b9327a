/** A URI template that cannot be used, or that a value cannot be put into. */
export class UriTemplateError extends Error {
  override readonly name = "UriTemplateError";
  readonly code: "uri_template.invalid" | "uri_template.too_long";
  /** The template, cut short. */
  readonly template: string;

  constructor(code: UriTemplateError["code"], template: string, message: string, options?: ErrorOptions) {
    const shown = template.length > 100 ? `${template.slice(0, 99)}…` : template;
    super(`URI template ${JSON.stringify(shown)}: ${message}.`, options);
    this.code = code;
    this.template = shown;
  }
}
