"""The search: archive, fitness, selection and emitters, all by id and in any order."""
