"""From molecules to a model: what its prediction of a molecule rests on, and which atoms its pooling layers kept."""

from pathlib import Path

import networkx as nx
from sklearn.model_selection import train_test_split

from tapnet import TAPClassifier, load_dataset
from tapnet.viz import save


def molecules() -> tuple[list[nx.Graph], list[str]]:
    """MUTAG as your own data might come: atoms with names and an element, classes that are words."""
    dataset = load_dataset("MUTAG")
    graphs = []
    for i in range(len(dataset)):
        graph = dataset.to_networkx(i)
        for _, atom in graph.nodes(data=True):
            atom["element"] = atom.pop("label")
        graphs.append(nx.relabel_nodes(graph, {n: f"{atom['element']}{n + 1}" for n, atom in graph.nodes(data=True)}))
    return graphs, [dataset.class_names[c] for c in dataset.y]


def main() -> None:
    graphs, y = molecules()
    train, test, y_train, y_test = train_test_split(graphs, y, test_size=0.2, stratify=y, random_state=0)
    model = TAPClassifier(node_label="element", epochs=60, random_state=0).fit(train, y_train)
    held_out = f"{len(test)} of {len(graphs)} molecules, held out once (stratified, seed 0)"
    print(f"accuracy after the last of {model.epochs} epochs: {100 * model.score(test, y_test):.1f} % on {held_out}\n")
    print(f"A molecule of those that were held out, {y_test[0]}:")
    explanation = model.explain(test[0])
    print(explanation)
    save(explanation.plot(kept=True), Path("molecule"), ("png",))
    print("\nWritten: molecule.png")


if __name__ == "__main__":
    main()
