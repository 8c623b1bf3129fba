"""Studies: every table and figure of the paper, from training to table.

setup.py     what was asked for; the groups of agents that a table's lines are made of
pool.py      trains what is missing, evaluates, remembers: runs that exist are not repeated
lines.py     what a group of seeds scored and cost, beside the paper's figures
table.py     the same lines as CSV, Markdown, LaTeX and on a terminal
catalogue.py the studies by name, one module for each table or figure
"""
