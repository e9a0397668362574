"""The lessons' sliders: one lessonNN module a lesson, of plain functions that draw pictures."""
