"""Reading comprehension: which words of a paragraph answer a question about it."""
