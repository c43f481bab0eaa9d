"""The scores of one plugin for one pod class, on all rows, in one of three representations.

| representation | a raw score is | memory | module |
|---|---|---|---|
| `UniformScores` | the same on all rows | one number | `uniform` |
| `DenseScores` | any number | 1 or 8 bytes a row | `dense` |
| `CodedClassScores` | one of few values, by the row's code | the plugin's codes | `coded` |

`ScoreColumn` (`column`) holds one of them and replaces it when the plugin returns another form. The interface is
`ClassScores` (`representation`). The arithmetic from a raw score to weighted points is in `scale`.
"""
