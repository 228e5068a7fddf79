// Counts the steps of a parser, so that a test can check that the work grows no faster than the length of the text.

export class Work {
  /** Number of characters that the parser has looked at, over all passes. */
  steps = 0;
  /** Number of nodes that the parser has created. */
  nodes = 0;
}
