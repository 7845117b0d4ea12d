"""What is made of the tables: figures, pages, comparisons."""
