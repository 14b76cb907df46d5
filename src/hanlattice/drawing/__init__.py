"""Pictures as SVG and HTML, made of plain marks."""
