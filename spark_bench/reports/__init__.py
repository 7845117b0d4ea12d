"""Reports made of the tables: figures, pages, comparisons."""
