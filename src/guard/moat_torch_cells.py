# SPDX-License-Identifier: MIT
"""Operators of PyTorch that exist for CUDA only, written with others: the cells of LSTM and GRU."""


def register(kernels, torch):
    """Registers the cells for the dispatch key CUDA."""

    def lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
        gates = input_gates + hidden_gates
        if input_bias is not None:
            gates = gates + input_bias + hidden_bias
        i, f, g, o = gates.chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        cy = f * cx + i * g
        return o * cy.tanh(), cy, torch.cat((i, f, g, o), 1)

    def lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
        if grad_hy is None and grad_cy is None:
            return None, None, None
        i, f, g, o = workspace.chunk(4, 1)
        grad_h = torch.zeros_like(cy) if grad_hy is None else grad_hy
        tanh = cy.tanh()
        grad_c = grad_h * o * (1 - tanh * tanh)
        if grad_cy is not None:
            grad_c = grad_c + grad_cy
        gates = torch.cat(
            (
                grad_c * g * i * (1 - i),
                grad_c * cx * f * (1 - f),
                grad_c * i * (1 - g * g),
                grad_h * tanh * o * (1 - o),
            ),
            1,
        )
        return gates, grad_c * f, gates.sum(0) if has_bias else None

    def gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
        if input_bias is not None:
            input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
        ir, ii, inew = input_gates.chunk(3, 1)
        hr, hi, hnew = hidden_gates.chunk(3, 1)
        reset, update = (ir + hr).sigmoid(), (ii + hi).sigmoid()
        new = (inew + reset * hnew).tanh()
        return new + update * (hx - new), torch.cat((reset, update, new, hx, hnew), 1)

    def gru_cell_backward(grad_hy, workspace, has_bias):
        reset, update, new, hx, hnew = workspace.chunk(5, 1)
        grad_new = grad_hy * (1 - update) * (1 - new * new)
        grad_reset = grad_new * hnew * reset * (1 - reset)
        grad_update = grad_hy * (hx - new) * update * (1 - update)
        inputs = torch.cat((grad_reset, grad_update, grad_new), 1)
        hidden = torch.cat((grad_reset, grad_update, grad_new * reset), 1)
        biases = (inputs.sum(0), hidden.sum(0)) if has_bias else (None, None)
        return inputs, hidden, grad_hy * update, biases[0], biases[1]

    kernels.impl("_thnn_fused_lstm_cell", lstm_cell)
    kernels.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward)
    kernels.impl("_thnn_fused_gru_cell", gru_cell)
    kernels.impl("_thnn_fused_gru_cell_backward", gru_cell_backward)
