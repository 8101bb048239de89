"""The search: what to ask next and what is learnt from the answers, all by id and in any order."""
