"""Models of torchvision and timm against figures that their authors published, as constants.

`make test-zoo` compares all of them with the files in ../shared; these few need no file.
"""

from __future__ import annotations

import pytest

from tests.formats.torch.torch_nets import vision
from tests.zoo.published import Figure, table
from tests.zoo.zoo_torch import timm_row, torchvision_row

pytestmark = pytest.mark.filterwarnings("ignore")

# num_params, and the GMACs that it calls GFLOPS; those of detectors depend on what they detect.
TORCHVISION = """
    task            builder                                     input    params    GMACs
    classification  maxvit_t                              1x3x224x224  30919624    5.558
    classification  mnasnet1_3                            1x3x224x224   6282256    0.526
    classification  regnet_x_3_2gf                        1x3x224x224  15296552    3.177
    classification  regnet_y_1_6gf                        1x3x224x224  11202430    1.612
    classification  shufflenet_v2_x1_5                    1x3x224x224   3503624    0.296
    classification  swin_v2_b                             1x3x256x256  87930848   20.325
    classification  swin_v2_s                             1x3x256x256  49737442   11.546
    segmentation    deeplabv3_mobilenet_v3_large          1x3x520x520  11029328   10.452
    segmentation    deeplabv3_resnet50                    1x3x520x520  42004074  178.722
    segmentation    fcn_resnet101                         1x3x520x520  54314346  232.738
    segmentation    lraspp_mobilenet_v3_large             1x3x520x520   3221538    2.086
    detection       fasterrcnn_mobilenet_v3_large_fpn               -  19386354    4.494
    detection       fasterrcnn_resnet50_fpn                         -  41755286   134.38
    detection       fasterrcnn_resnet50_fpn_v2                      -  43712278  280.371
    detection       keypointrcnn_resnet50_fpn                       -  59137258   137.42
    detection       maskrcnn_resnet50_fpn_v2                        -  46359409  333.577
    detection       retinanet_resnet50_fpn_v2                       -  38198935  152.238
    detection       ssd300_vgg16                                    -  35641826   34.858
    detection       ssdlite320_mobilenet_v3_large                   -   3440060    0.583
    video           mvit_v1_b                          1x3x16x224x224  36610672   70.599
    video           r2plus1d_18                        1x3x16x112x112  31505325   40.519
    video           s3d                                1x3x16x224x224   8320048   17.979
    video           swin3d_t                           1x3x16x224x224  28158070   43.882
    optical_flow    raft_large                                      -   5257536  211.007
    optical_flow    raft_small                                      -    990162   47.655
    quantization    quantized_googlenet                   1x3x224x224   6624904    1.498
    quantization    quantized_mobilenet_v3_large          1x3x224x224   5483032    0.217
    quantization    quantized_resnet18                    1x3x224x224  11689512    1.814
    quantization    quantized_resnet50                    1x3x224x224  25557032    4.089
    quantization    quantized_shufflenet_v2_x1_0          1x3x224x224   2278604    0.145
"""
# Millions of parameters, GMACs as fvcore counts them, millions of activations.
TIMM = table(
    "timm, results/benchmark-infer-*.csv",
    """
    model                         input  Mparams  timm_GMACs  timm_Mactivations
    bat_resnext26ts                 256    10.73        2.53              12.51
    botnet26t_256                   256    12.49        3.32              11.98
    caformer_s18                    224    26.34        4.13              19.39
    cait_xxs24_224                  224    11.96        2.53              20.29
    coat_lite_tiny                  224     5.72        1.60              11.65
    coatnet_pico_rw_224             224    10.85        2.05              14.62
    convit_tiny                     224     5.71        1.26               7.94
    convmixer_1024_20_ks9_p14       224    24.38        5.55               5.51
    convnextv2_nano                 224    15.62        2.46               8.37
    crossvit_9_dagger_240           240     8.78        1.99               9.97
    cs3darknet_focus_s              256     3.27        0.69               2.70
    cspresnet50                     256    21.62        4.54              11.50
    darknet21                       256    20.86        3.93               7.47
    davit_tiny                      224    28.36        4.54              18.89
    deit_tiny_patch16_224           224     5.72        1.26               5.97
    densenetblur121d                224     8.00        3.11               7.90
    dla46x_c                        224     1.07        0.54               5.66
    dpn68                           224    12.61        2.35              10.47
    eca_halonext26ts                256    10.76        2.44              11.46
    ecaresnet50t                    160    25.57        2.21               6.04
    edgenext_xx_small               256     1.33        0.26               3.33
    efficientformer_l1              224    12.29        1.30               5.53
    efficientvit_b0                 224     3.41        0.10               2.87
    ese_vovnet19b_slim_dw           224     1.90        0.40               5.28
    eva02_tiny_patch14_224          224     5.50        1.70               9.14
    fasternet_t0                    224     3.91        0.34               1.97
    fbnetc_100                      224     5.57        0.40               6.51
    focalnet_tiny_srf               224    28.43        4.42              16.32
    gcresnet50t                     256    25.90        5.42              14.67
    gcvit_xxtiny                    224    12.00        2.14              15.36
    gernet_s                        224     8.17        0.75               2.65
    ghostnet_100                    224     5.18        0.15               3.55
    gmixer_12_224                   224    12.70        2.67               7.26
    gmlp_ti16_224                   224     5.87        1.34               7.55
    hardcorenas_a                   224     5.26        0.23               4.38
    hgnetv2_b0                      224     6.00        0.33               2.12
    hiera_tiny_224                  224    27.91        4.91              17.13
    hrnet_w18_small                 224    13.19        1.61               5.72
    inception_next_atto             224     4.16        0.50               3.63
    lambda_resnet26rpt_256          256    10.99        3.16              11.87
    lcnet_035                       224     1.64        0.03               1.04
    mambaout_kobe                   224     9.14        1.52              10.00
    maxvit_pico_rw_256              256     7.46        1.83              22.30
    mixer_s32_224                   224    19.10        1.00               2.28
    mixnet_s                        224     4.13        0.25               6.25
    mobilenetv3_small_050           224     1.59        0.03               0.92
    mobilevit_xxs                   256     1.27        0.42               8.34
    mvitv2_tiny                     224    24.17        4.70              21.16
    nest_tiny                       224    17.06        5.83              25.48
    nf_regnet_b0                    192     8.76        0.37               3.15
    pit_ti_224                      224     4.85        0.70               6.19
    poolformer_s24                  224    21.39        3.41              10.68
    pvt_v2_b0                       224     3.67        0.57               7.99
    regnetz_005                     224     7.12        0.52               5.86
    repghostnet_050                 224     2.31        0.05               2.02
    res2net50_48w_2s                224    25.29        4.18              11.72
    resmlp_12_224                   224    15.35        3.01               5.50
    resnest14d                      224    10.61        2.76               7.33
    resnet10t                       176     5.44        0.70               1.51
    resnetrs50                      160    35.69        2.29               6.20
    rexnet_100                      224     4.80        0.41               7.44
    selecsls42                      224    30.35        2.94               4.62
    sequencer2d_s                   224    27.65        4.96              11.31
    skresnet18                      224    11.96        1.82               3.24
    starnet_s150                    224     1.56        0.23               2.75
    swiftformer_xs                  224     3.48        0.61               6.45
    swin_tiny_patch4_window7_224    224    28.29        4.51              17.06
    swinv2_cr_tiny_224              224    28.33        4.66              28.45
    tinynet_e                       106     2.04        0.03               0.69
    tnt_s_patch16_224               224    23.77        5.25              24.37
    tresnet_m                       224    31.39        5.75               7.31
    twins_pcpvt_small               224    24.11        3.83              18.08
    visformer_tiny                  224    10.32        1.27               5.72
    vit_small_patch32_224           224    22.88        1.15               2.50
    vitamin_small_224               224    22.17        5.92              26.38
    volo_d1_224                     224    26.63        6.94              24.43
    xception                        299    22.86        8.40              35.83
    xcit_nano_12_p16_224            224     3.05        0.56               4.17
    """,
)
MODELS = [line.split() for line in TORCHVISION.strip().splitlines()[1:]]
QNNPACK = ("quantized_mobilenet_v3_large",)  # other quantized models are for fbgemm


@pytest.mark.parametrize("task, builder, shape, params, gmacs", MODELS, ids=[m[1] for m in MODELS])
def test_torchvision(task: str, builder: str, shape: str, params: str, gmacs: str) -> None:
    weights = vision().get_model_weights(builder).DEFAULT if task == "detection" else ""
    row = {
        "task": task,
        "weights": str(weights),
        "builder": builder,
        "input_confirmed": "" if shape == "-" else shape,
        "eval_crop_size": "",
        "num_params": params,
        "gmacs_called_ops": gmacs,
        "quant_backend": "qnnpack" if builder in QNNPACK else "fbgemm",
    }
    assert torchvision_row(row) == ""


def rows_of(figures: tuple[Figure, ...]) -> dict[str, dict[str, str]]:
    """The figures of a model in the form of timm's own table."""
    columns = {"Mparams": "param_count_m", "timm_GMACs": "gmacs", "timm_Mactivations": "macts"}
    rows: dict[str, dict[str, str]] = {}
    for figure in figures:
        row = rows.setdefault(figure.network, {"model": figure.network, "img_size": figure.input})
        row[columns[figure.quantity]] = figure.stated
    return rows


ROWS = rows_of(TIMM)


@pytest.mark.parametrize("model", ROWS)
def test_timm(model: str) -> None:
    vision()
    pytest.importorskip("timm", reason="timm is not installed")
    assert timm_row(ROWS[model]) == ""


@pytest.mark.parametrize("column", ["param_count_m", "gmacs", "macts"])
def test_a_wrong_figure_is_found(column: str) -> None:
    vision()
    pytest.importorskip("timm", reason="timm is not installed")
    row = ROWS["deit_tiny_patch16_224"]
    assert "published" in timm_row({**row, column: f"{float(row[column]) + 0.01:.2f}"})


def test_so_many_figures_are_compared() -> None:
    given = [value for *_, params, gmacs in MODELS for value in (params, gmacs) if value != "-"]
    assert len(TIMM) == 3 * len(ROWS)
    assert len(given) + len(TIMM) >= 280
