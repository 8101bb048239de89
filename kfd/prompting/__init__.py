"""Text in, text out: prompts rendered, answers read, sources described. Pure."""
